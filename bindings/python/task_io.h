/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs and outputs of a task: arrays in, arrays out, without copies where the memory allows it.
 */
#ifndef RRFP_PYTHON_TASK_IO_H
#define RRFP_PYTHON_TASK_IO_H

#include "tensor.h"

/* The tensors that came along an edge, a list of read-only Tensors; None if nothing travels
 * there. */
static PyObject *rank_input(rrfp_rank *rank, uint64_t ticket, int32_t edge) {
  enum { kUsual = 8 };
  rrfp_tensor few[kUsual];
  rrfp_tensor *tensors = few;
  PyObject *list = NULL;
  rrfp_error error;
  size_t count = 0;
  rrfp_status status = rrfp_rank_input(rank, ticket, edge, few, kUsual, &count, NULL, &error);
  if (status == RRFP_OK && count > kUsual) {
    tensors = PyMem_Calloc(count, sizeof *tensors);
    if (tensors == NULL) return PyErr_NoMemory();
    status = rrfp_rank_input(rank, ticket, edge, tensors, count, &count, NULL, &error);
  }
  if (status < 0) {
    raise_error(&error);
  } else if (status == RRFP_ABSENT) {
    list = Py_NewRef(Py_None);
  } else {
    list = PyList_New((Py_ssize_t)count);
    for (size_t k = 0; list != NULL && k < count; ++k) {
      PyObject *tensor = tensor_new(&tensors[k], false);
      if (tensor == NULL) {
        Py_CLEAR(list);
      } else {
        PyList_SET_ITEM(list, (Py_ssize_t)k, tensor);
      }
    }
  }
  if (tensors != few) PyMem_Free(tensors);
  return list;
}

/* A writable Tensor in engine memory. */
static PyObject *rank_alloc(rrfp_rank *rank, uint64_t ticket, int32_t dtype, int32_t ndim,
                            const int64_t *shape) {
  rrfp_error error;
  rrfp_tensor tensor;
  if (rrfp_rank_alloc(rank, ticket, dtype, ndim, shape, &tensor, &error) < 0) {
    raise_error(&error);
    return NULL;
  }
  return tensor_new(&tensor, true);
}

/* Called by the engine, from any thread that is inside a call, when wrapped memory is free
 * again. */
static void release_view(void *user_data) {
  if (!interpreter_runs()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyBuffer_Release(user_data);
  PyMem_Free(user_data);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
}

/* Wraps what the buffer protocol shows; what is not contiguous is copied into engine memory. */
static int wrap_view(rrfp_rank *rank, uint64_t ticket, PyObject *object, rrfp_tensor *tensor) {
  rrfp_error error;
  rrfp_status status;
  Py_buffer *view = PyMem_Malloc(sizeof *view);
  if (view == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  if (PyObject_GetBuffer(object, view, PyBUF_FORMAT | PyBUF_STRIDED_RO) < 0) {
    PyMem_Free(view);
    return -1;
  }
  int result = describe_view(view, tensor);
  if (result == 0 && PyBuffer_IsContiguous(view, 'C')) {
    status = rrfp_rank_wrap(rank, ticket, view->buf, (size_t)view->len, release_view, view,
                            &tensor->buffer, &error);
    if (status == RRFP_OK) return 0; /* the engine releases the view */
    raise_error(&error);
    result = -1;
  } else if (result == 0) {
    status =
        rrfp_rank_alloc(rank, ticket, tensor->dtype, tensor->ndim, tensor->shape, tensor, &error);
    if (status < 0) {
      raise_error(&error);
      result = -1;
    } else {
      result = PyBuffer_ToContiguous(tensor->data, view, view->len, 'C');
    }
  }
  PyBuffer_Release(view);
  PyMem_Free(view);
  return result;
}

/* Gives the capsule's memory to the engine, which calls its deleter. */
static int wrap_capsule(rrfp_rank *rank, uint64_t ticket, PyObject *object, rrfp_tensor *tensor) {
  struct DLManagedTensor *managed = NULL;
  rrfp_error error;
  PyObject *capsule = take_capsule(object, &managed);
  if (capsule == NULL) return -1;
  const rrfp_status status = rrfp_rank_wrap_dlpack(rank, ticket, managed, tensor, &error);
  if (status < 0) {
    raise_error(&error);
  } else {
    PyCapsule_SetName(capsule, "used_dltensor"); /* it is no longer the capsule's to delete */
  }
  Py_DECREF(capsule);
  return status < 0 ? -1 : 0;
}

/* Sees an object as a tensor that put() hands over. */
static int output_tensor(rrfp_rank *rank, uint64_t ticket, PyObject *object, rrfp_tensor *tensor) {
  memset(tensor, 0, sizeof *tensor);
  if (object == Py_None) return 0; /* RRFP_NONE: a gradient that is zero */
  if (!PyObject_CheckBuffer(object)) return wrap_capsule(rank, ticket, object, tensor);
  /* A view of engine memory: handed on as what it is, if it is a contiguous part of it. */
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_FORMAT | PyBUF_STRIDED_RO) < 0) return -1;
  const Tensor *found = find_tensor(object); /* while the view keeps it alive */
  const bool handed_on = found != NULL && PyBuffer_IsContiguous(&view, 'C');
  int result = 0;
  if (handed_on) {
    result = describe_view(&view, tensor);
    tensor->buffer = found->tensor.buffer;
    const bool bits = found->tensor.dtype == RRFP_BF16 && tensor->dtype == RRFP_U16;
    if (bits) tensor->dtype = RRFP_BF16;
  }
  PyBuffer_Release(&view);
  return handed_on ? result : wrap_view(rank, ticket, object, tensor);
}

/* Whether tensor k asks for a gradient: `wants` is a bool, which speaks for floating-point tensors,
 * or a sequence with one for each. -1 with an exception. */
static int wants_gradient(PyObject *wants, Py_ssize_t k, rrfp_dtype dtype) {
  if (wants == Py_False) return 0;
  if (wants == Py_True) return is_floating(dtype);
  PyObject *item = PySequence_GetItem(wants, k);
  if (item == NULL) return -1;
  const int result = PyObject_IsTrue(item);
  Py_DECREF(item);
  return result;
}

/* Puts the outputs of the running task for an edge. */
static PyObject *rank_put(rrfp_rank *rank, uint64_t ticket, int32_t edge, PyObject *objects,
                          PyObject *wants) {
  enum { kUsual = 8 };
  rrfp_tensor few[kUsual];
  rrfp_tensor *tensors = few;
  rrfp_error error;
  PyObject *result = NULL;
  PyObject *tuple = PySequence_Tuple(objects); /* which the code of objects cannot change */
  if (tuple == NULL) return NULL;
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  if (count > kUsual) tensors = PyMem_Calloc((size_t)count, sizeof *tensors);
  if (tensors == NULL) PyErr_NoMemory();
  for (Py_ssize_t k = 0; tensors != NULL && k < count; ++k) {
    /* What is wrapped here stays with the task, also if a later one fails. */
    if (output_tensor(rank, ticket, PyTuple_GET_ITEM(tuple, k), &tensors[k]) < 0) goto done;
    const int flag = wants_gradient(wants, k, tensors[k].dtype);
    if (flag < 0) goto done;
    if (flag > 0) tensors[k].flags |= RRFP_TENSOR_WANTS_GRADIENT;
  }
  if (tensors == NULL) goto done;
  if (rrfp_rank_put(rank, ticket, edge, tensors, (size_t)count, NULL, &error) < 0) {
    raise_error(&error);
  } else {
    result = Py_NewRef(Py_None);
  }
done:
  if (tensors != few) PyMem_Free(tensors);
  Py_DECREF(tuple);
  return result;
}

#endif /* RRFP_PYTHON_TASK_IO_H */
