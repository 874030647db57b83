/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors between Python and the engine, without copies.
 *
 *   Tensor    a view of engine memory that holds a reference to it. It speaks the buffer protocol,
 *             so NumPy aliases it, and DLPack
 *   Source    an object of the program (buffer protocol or DLPack) seen as an rrfp_tensor; it keeps
 *             the object's memory where it is
 *   Tensors   an array of Sources, for calls that read many tensors in place
 */
#ifndef RRFP_PYTHON_TENSOR_H
#define RRFP_PYTHON_TENSOR_H

#include "dlpack.h"
#include "handle.h"

/* ---- Element types --------------------------------------------------------------------------- */

typedef struct {
  const char *format; /* of the struct module; bfloat16 has none and shows as its bits */
  Py_ssize_t size;
} ElementType;

/* By RRFP_F32 .. RRFP_BOOL. */
static const ElementType element_types[] = {{NULL, 0}, {"f", 4}, {"d", 8}, {"e", 2}, {"H", 2},
                                            {"b", 1},  {"h", 2}, {"i", 4}, {"l", 8}, {"B", 1},
                                            {"H", 2},  {"I", 4}, {"L", 8}, {"?", 1}};
enum { kElementTypes = (int)(sizeof element_types / sizeof element_types[0]) };

static bool is_floating(rrfp_dtype dtype) {
  return dtype >= RRFP_F32 && dtype <= RRFP_BF16;
}

/* The element type of a buffer, or RRFP_NONE for what the engine does not know. */
static rrfp_dtype read_format(const char *format, Py_ssize_t size) {
  if (format == NULL) return RRFP_U8;
  if (*format == '@' || *format == '=' || *format == '<') ++format; /* native, or little-endian */
  if (*format == '\0' || format[1] != '\0') return RRFP_NONE;
  const bool is_signed = strchr("bhilqn", *format) != NULL;
  if (is_signed || strchr("BHILQN", *format) != NULL) {
    const int step = is_signed ? 0 : RRFP_U8 - RRFP_I8;
    return size == 1   ? RRFP_I8 + step
           : size == 2 ? RRFP_I16 + step
           : size == 4 ? RRFP_I32 + step
                       : RRFP_I64 + step;
  }
  switch (*format) {
    case 'f': return RRFP_F32;
    case 'd': return RRFP_F64;
    case 'e': return RRFP_F16;
    case '?': return RRFP_BOOL;
    default: return RRFP_NONE;
  }
}

/* ---- Tensor ---------------------------------------------------------------------------------- */

typedef struct {
  PyObject_HEAD
  rrfp_tensor tensor; /* holds a reference to its buffer */
  bool writable;
  Py_ssize_t shape[RRFP_DIMS_MAX];
  Py_ssize_t strides[RRFP_DIMS_MAX]; /* in bytes */
  Py_ssize_t bytes;
} Tensor;

static PyTypeObject *tensor_type = NULL;

/* A view of memory that lies in tensor->buffer. */
static PyObject *tensor_new(const rrfp_tensor *tensor, bool writable) {
  if (tensor->dtype <= RRFP_NONE || tensor->dtype >= kElementTypes) {
    raise_status(RRFP_ERR_TENSOR_MISMATCH, "a tensor has an element type unknown to this binding");
    return NULL;
  }
  Tensor *self = PyObject_New(Tensor, tensor_type);
  if (self == NULL) return NULL;
  self->tensor = *tensor;
  self->writable = writable;
  self->bytes = element_types[tensor->dtype].size;
  for (int32_t d = tensor->ndim - 1; d >= 0; --d) { /* tensors of the engine are contiguous */
    self->shape[d] = (Py_ssize_t)tensor->shape[d];
    self->strides[d] = self->bytes;
    self->bytes *= self->shape[d];
  }
  if (self->bytes == 0) { /* strides of an empty tensor mean nothing, but must be multiples */
    for (int32_t d = 0; d < tensor->ndim; ++d) {
      self->strides[d] = element_types[tensor->dtype].size;
    }
  }
  rrfp_buffer_retain(tensor->buffer);
  return (PyObject *)self;
}

static void tensor_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  rrfp_buffer_release(((Tensor *)object)->tensor.buffer);
  PyObject_Free(object);
  Py_DECREF(type);
}

static int tensor_getbuffer(PyObject *object, Py_buffer *view, int flags) {
  static char nothing[64]; /* an address for tensors without elements */
  Tensor *self = (Tensor *)object;
  view->obj = NULL;
  if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && !self->writable) {
    PyErr_SetString(PyExc_BufferError, "tensors that arrived from the engine are read-only");
    return -1;
  }
  view->buf = self->tensor.data != NULL ? self->tensor.data : nothing;
  view->obj = Py_NewRef(object);
  view->len = self->bytes;
  view->itemsize = element_types[self->tensor.dtype].size;
  view->readonly = !self->writable;
  view->ndim = self->tensor.ndim;
  view->format = NULL;
  if ((flags & PyBUF_FORMAT) != 0) view->format = (char *)element_types[self->tensor.dtype].format;
  view->shape = (flags & PyBUF_ND) != 0 && view->ndim > 0 ? self->shape : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES && view->ndim > 0 ? self->strides : NULL;
  view->suboffsets = NULL;
  view->internal = NULL;
  return 0;
}

static void forget_capsule(PyObject *capsule) {
  DLManagedTensor *managed = PyCapsule_GetPointer(capsule, "dltensor");
  if (managed == NULL) {
    PyErr_Clear(); /* the consumer has taken and renamed it */
  } else if (managed->deleter != NULL) {
    managed->deleter(managed);
  }
}

static PyObject *tensor_dlpack(PyObject *object, PyObject *args, PyObject *keywords) {
  static char *names[] = {"stream", NULL};
  PyObject *stream = Py_None;
  rrfp_error error;
  struct DLManagedTensor *managed = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$O:__dlpack__", names, &stream)) return NULL;
  if (rrfp_tensor_to_dlpack(&((Tensor *)object)->tensor, &managed, &error) < 0) {
    raise_error(&error);
    return NULL;
  }
  PyObject *capsule = PyCapsule_New(managed, "dltensor", forget_capsule);
  if (capsule == NULL) managed->deleter(managed);
  return capsule;
}

static PyObject *tensor_dlpack_device(PyObject *object, PyObject *unused) {
  const rrfp_tensor *tensor = &((Tensor *)object)->tensor;
  (void)unused;
  const int type = tensor->device_type == 0 ? RRFP_DEVICE_CPU : tensor->device_type;
  return Py_BuildValue("ii", type, (int)tensor->device_id);
}

static PyObject *tensor_get_shape(PyObject *object, void *unused) {
  const Tensor *self = (Tensor *)object;
  (void)unused;
  PyObject *shape = PyTuple_New(self->tensor.ndim);
  for (int32_t d = 0; shape != NULL && d < self->tensor.ndim; ++d) {
    PyTuple_SET_ITEM(shape, d, PyLong_FromSsize_t(self->shape[d]));
  }
  return shape;
}

static PyObject *tensor_get_code(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromLong(((Tensor *)object)->tensor.dtype);
}

static PyObject *tensor_get_address(PyObject *object, void *unused) {
  (void)unused;
  return PyLong_FromVoidPtr(((Tensor *)object)->tensor.data);
}

static PyObject *tensor_get_wants(PyObject *object, void *unused) {
  (void)unused;
  return PyBool_FromLong(((Tensor *)object)->tensor.flags & RRFP_TENSOR_WANTS_GRADIENT);
}

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A DLPack capsule that shares the memory."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "(device type, device id)"},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef tensor_getset[] = {
    {"shape", tensor_get_shape, NULL, "Extents, a tuple.", NULL},
    {"dtype_code", tensor_get_code, NULL, "RRFP_F32 ..", NULL},
    {"address", tensor_get_address, NULL, "Of the first element.", NULL},
    {"wants_gradient", tensor_get_wants, NULL, "Whether its sender asked for a gradient.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot tensor_slots[] = {{Py_tp_dealloc, (void *)tensor_dealloc},
                                     {Py_tp_methods, tensor_methods},
                                     {Py_tp_getset, tensor_getset},
                                     {Py_bf_getbuffer, (void *)tensor_getbuffer},
                                     {Py_tp_doc, "A view of engine memory, which it keeps alive."},
                                     {0, NULL}};

static PyType_Spec tensor_spec = {"rrfp._native.Tensor", sizeof(Tensor), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  tensor_slots};

/* The Tensor whose memory a NumPy array or a memoryview shows, or null. Borrowed. */
static Tensor *find_tensor(PyObject *object) {
  Tensor *found = NULL;
  Py_INCREF(object);
  for (int depth = 0; depth < 4 && object != NULL && found == NULL; ++depth) {
    PyObject *base = NULL;
    if (Py_TYPE(object) == tensor_type) {
      found = (Tensor *)object;
      break;
    }
    if (PyMemoryView_Check(object)) {
      base = PyMemoryView_GET_BUFFER(object)->obj;
      Py_XINCREF(base);
    } else {
      base = PyObject_GetAttrString(object, "base");
      if (base == NULL) PyErr_Clear();
    }
    Py_DECREF(object);
    object = base;
  }
  Py_XDECREF(object); /* its viewer, which the caller holds, keeps it alive */
  return found;
}

/* ---- Source ---------------------------------------------------------------------------------- */

typedef struct {
  rrfp_tensor tensor; /* without a buffer */
  Py_buffer view;     /* view.obj is null if not in use */
  PyObject *capsule;  /* of DLPack, or null */
  void *copy;         /* of what was not contiguous, or null */
} Source;

static void source_clear(Source *source) {
  if (source->view.obj != NULL) PyBuffer_Release(&source->view);
  Py_CLEAR(source->capsule);
  PyMem_Free(source->copy);
  source->copy = NULL;
}

/* Fills in what `view` says. Returns -1 with an exception if the engine has no such tensors. */
static int describe_view(const Py_buffer *view, rrfp_tensor *tensor) {
  tensor->dtype = read_format(view->format, view->itemsize);
  if (tensor->dtype == RRFP_NONE) {
    PyErr_Clear();
    char text[120];
    snprintf(text, sizeof text, "elements of format '%.40s' are not supported",
             view->format != NULL ? view->format : "");
    raise_status(RRFP_ERR_TENSOR_MISMATCH, text);
    return -1;
  }
  if (view->ndim > RRFP_DIMS_MAX) {
    raise_status(RRFP_ERR_TENSOR_MISMATCH, "a tensor has more than 8 dimensions");
    return -1;
  }
  tensor->data = view->buf;
  tensor->ndim = view->ndim;
  for (int d = 0; d < view->ndim; ++d) tensor->shape[d] = view->shape[d];
  return 0;
}

/* A DLPack capsule of an object, and what is in it. Returns null with an exception. */
static PyObject *take_capsule(PyObject *object, struct DLManagedTensor **managed) {
  PyObject *capsule = PyObject_CallMethod(object, "__dlpack__", NULL);
  if (capsule == NULL) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
      PyErr_Format(PyExc_TypeError,
                   "a tensor is wanted (NumPy, the buffer protocol, or DLPack), not %.80s",
                   Py_TYPE(object)->tp_name);
    }
    return NULL;
  }
  *managed = PyCapsule_GetPointer(capsule, "dltensor");
  if (*managed == NULL) Py_CLEAR(capsule);
  return capsule;
}

/* Looks at an object for the time until source_clear. What is not contiguous is copied. */
static int source_read(PyObject *object, Source *source) {
  memset(source, 0, sizeof *source);
  if (PyObject_CheckBuffer(object)) {
    Py_buffer *view = &source->view;
    if (PyObject_GetBuffer(object, view, PyBUF_FORMAT | PyBUF_STRIDED_RO) < 0) return -1;
    if (describe_view(view, &source->tensor) < 0) goto failed;
    if (!PyBuffer_IsContiguous(view, 'C')) {
      source->copy = PyMem_Malloc((size_t)view->len + 1);
      if (source->copy == NULL) {
        PyErr_NoMemory();
        goto failed;
      }
      if (PyBuffer_ToContiguous(source->copy, view, view->len, 'C') < 0) goto failed;
      source->tensor.data = source->copy;
    }
    return 0;
  }
  struct DLManagedTensor *managed = NULL;
  rrfp_error error;
  source->capsule = take_capsule(object, &managed);
  if (source->capsule == NULL) return -1;
  if (rrfp_tensor_from_dlpack(managed, &source->tensor, &error) < 0) {
    raise_error(&error);
    goto failed;
  }
  return 0;
failed:
  source_clear(source);
  return -1;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

typedef struct {
  PyObject_VAR_HEAD rrfp_tensor *array;
  Source sources[];
} Tensors;

static PyTypeObject *tensors_type = NULL;

/* Holds the memory of a sequence of objects still, as one array of rrfp_tensor. */
static PyObject *tensors_new(PyObject *objects) {
  PyObject *tuple = PySequence_Tuple(objects); /* which the code of objects cannot change */
  if (tuple == NULL) return NULL;
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  Tensors *self = PyObject_NewVar(Tensors, tensors_type, count);
  if (self == NULL) goto done;
  memset(self->sources, 0, (size_t)count * sizeof(Source));
  self->array = PyMem_Calloc((size_t)count + 1, sizeof(rrfp_tensor));
  if (self->array == NULL) PyErr_NoMemory();
  for (Py_ssize_t i = 0; self->array != NULL && i < count; ++i) {
    if (source_read(PyTuple_GET_ITEM(tuple, i), &self->sources[i]) < 0) break;
    self->array[i] = self->sources[i].tensor;
  }
  if (PyErr_Occurred()) Py_CLEAR(self);
done:
  Py_DECREF(tuple);
  return (PyObject *)self;
}

static void tensors_dealloc(PyObject *object) {
  Tensors *self = (Tensors *)object;
  PyTypeObject *type = Py_TYPE(object);
  for (Py_ssize_t i = 0; i < Py_SIZE(self); ++i) source_clear(&self->sources[i]);
  PyMem_Free(self->array);
  PyObject_Free(object);
  Py_DECREF(type);
}

/* Contiguous tensors as a list of (element type, shape, bytearray). */
static PyObject *copy_tensors(const rrfp_tensor *tensors, Py_ssize_t count) {
  PyObject *list = PyList_New(count);
  for (Py_ssize_t i = 0; list != NULL && i < count; ++i) {
    const rrfp_tensor *tensor = &tensors[i];
    Py_ssize_t bytes = element_types[tensor->dtype].size;
    PyObject *shape = PyTuple_New(tensor->ndim);
    for (int32_t d = 0; shape != NULL && d < tensor->ndim; ++d) {
      bytes *= (Py_ssize_t)tensor->shape[d];
      PyTuple_SET_ITEM(shape, d, PyLong_FromLongLong(tensor->shape[d]));
    }
    PyObject *memory = PyByteArray_FromStringAndSize(bytes > 0 ? tensor->data : "", bytes);
    PyObject *item = NULL;
    if (shape != NULL && memory != NULL) {
      item = Py_BuildValue("iOO", (int)tensor->dtype, shape, memory);
    }
    Py_XDECREF(shape);
    Py_XDECREF(memory);
    if (item == NULL) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, i, item);
    }
  }
  return list;
}

static PyType_Slot tensors_slots[] = {{Py_tp_dealloc, (void *)tensors_dealloc},
                                      {Py_tp_doc, "Tensors of the program, held still."},
                                      {0, NULL}};

static PyType_Spec tensors_spec = {
    "rrfp._native.Tensors", offsetof(Tensors, sources), sizeof(Source),
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, tensors_slots};

#endif /* RRFP_PYTHON_TENSOR_H */
