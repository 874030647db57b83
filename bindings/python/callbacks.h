/* SPDX-License-Identifier: Apache-2.0
 *
 * What the C library calls back, and small things that structs need.
 */
#ifndef RRFP_PYTHON_CALLBACKS_H
#define RRFP_PYTHON_CALLBACKS_H

#include "step.h"

/* What this layer needs of the package; `kinds` is a tuple. */
static void set_hooks(PyObject *make_error, PyObject *has_main_ended, PyObject *kinds) {
  Py_XSETREF(error_factory, Py_NewRef(make_error));
  Py_XSETREF(main_ended, Py_NewRef(has_main_ended));
  Py_XSETREF(kind_names, Py_NewRef(kinds));
}

/* rrfp_log_fn: calls log(level, text), on any thread. Its errors are shown and go no further. */
static void write_log(void *user_data, rrfp_log_level level, const char *text) {
  if (!interpreter_runs()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *result = PyObject_CallFunction(user_data, "is", (int)level, text);
  if (result == NULL) PyErr_WriteUnraisable(user_data);
  Py_XDECREF(result);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
}

/* The handle made with these options must keep() the function. */
static void set_pipeline_log(rrfp_pipeline_options *options, PyObject *log) {
  options->log = write_log;
  options->log_user_data = log;
}

static void set_trainer_log(rrfp_trainer_options *options, PyObject *log) {
  options->log = write_log;
  options->log_user_data = log;
}

static void free_names(PyObject *capsule) {
  Py_DECREF(PyCapsule_GetContext(capsule));
  PyMem_Free(PyCapsule_GetPointer(capsule, "rrfp names"));
}

/* A tuple of str as an array of C strings. */
static PyObject *names(PyObject *strings) {
  if (!PyTuple_Check(strings)) {
    PyErr_SetString(PyExc_TypeError, "a tuple of str is wanted");
    return NULL;
  }
  const Py_ssize_t count = PyTuple_GET_SIZE(strings);
  const char **array = PyMem_Calloc((size_t)count + 1, sizeof *array);
  if (array == NULL) return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; ++i) {
    array[i] = text_in(PyTuple_GET_ITEM(strings, i));
    if (array[i] == NULL) goto failed;
  }
  PyObject *capsule = PyCapsule_New(array, "rrfp names", free_names);
  if (capsule == NULL) goto failed;
  PyCapsule_SetContext(capsule, Py_NewRef(strings));
  return capsule;
failed:
  PyMem_Free(array);
  return NULL;
}

#endif /* RRFP_PYTHON_CALLBACKS_H */
