/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles of the C API as Python objects, and its errors as exceptions.
 *
 * A Handle owns what it points to. Every call enters it first and leaves it afterwards, both with
 * the interpreter's lock held; close() takes the pointer away, so that later calls raise, and the
 * last call that leaves destroys. So a handle that is closed while another thread is inside a call
 * on it is an error in that thread, never a dangling pointer.
 */
#ifndef RRFP_PYTHON_HANDLE_H
#define RRFP_PYTHON_HANDLE_H

#include <Python.h>
#include <rrfp/multimodal.h>
#include <rrfp/simulate.h>

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Makes an exception of (status, rank, stage, microbatch, kind, user_code, text); set by
 * errors.py. */
static PyObject *error_factory = NULL;

static void raise_error(const rrfp_error *error) {
  if (error_factory == NULL) {
    PyErr_SetString(PyExc_RuntimeError, error->text);
    return;
  }
  /* Texts that the engine has cut may end inside a character. */
  PyObject *text = PyUnicode_DecodeUTF8(error->text, (Py_ssize_t)strlen(error->text), "replace");
  if (text == NULL) return;
  PyObject *exception = PyObject_CallFunction(
      error_factory, "iiiiiiN", (int)error->status, (int)error->rank, (int)error->stage,
      (int)error->microbatch, (int)error->kind, (int)error->user_code, text);
  if (exception == NULL) return;
  PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  Py_DECREF(exception);
}

/* Raises what this layer has found itself. */
static void raise_status(rrfp_status status, const char *text) {
  rrfp_error error = {status, -1, -1, -1, -1, 0, {0}, {0}};
  snprintf(error.text, sizeof error.text, "%s", text);
  raise_error(&error);
}

/* A str as text for C, which ends at the first zero byte; null with an exception. */
static const char *text_in(PyObject *object) {
  Py_ssize_t length = 0;
  const char *text = PyUnicode_AsUTF8AndSize(object, &length);
  if (text == NULL || strlen(text) == (size_t)length) return text;
  PyErr_SetString(PyExc_ValueError, "embedded null character");
  return NULL;
}

/* False once the interpreter goes down: a thread must not ask for its lock any more. */
static bool interpreter_runs(void) {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsInitialized() && !Py_IsFinalizing();
#else
  return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

/* ---- Handles --------------------------------------------------------------------------------- */

typedef struct {
  const char *name;
  void (*destroy)(void *pointer);
  bool shared; /* several threads may be inside calls on one object */
  /* Sends out a thread that is inside a call, which then finds the handle closed; or null. */
  void (*interrupt)(void *pointer);
} HandleKind;

typedef struct Handle {
  PyObject_HEAD
  void *pointer; /* null once closed */
  void *doomed;  /* closed, but users are inside calls; the last one destroys it */
  const HandleKind *kind;
  Py_ssize_t users;
  bool woken;           /* ranks: wake() was called, and no call of next() has said so yet */
  bool waiting;         /* ranks: a thread waits for a task, also between its slices of waiting */
  struct Handle *owner; /* what this one uses as long as it lives, or null */
  PyObject *keep;       /* an object that lives at least as long, such as a log function, or null */
} Handle;

static PyTypeObject *handle_type = NULL;

static void handle_leave(Handle *handle);

static void handle_destroy(Handle *handle, void *pointer) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback); /* release functions may run Python code */
  Py_BEGIN_ALLOW_THREADS
  handle->kind->destroy(pointer);
  Py_END_ALLOW_THREADS
  if (handle->owner != NULL) {
    Handle *owner = handle->owner;
    handle->owner = NULL;
    handle_leave(owner);
    Py_DECREF(owner);
  }
  Py_CLEAR(handle->keep);
  PyErr_Restore(type, value, traceback);
}

/* The pointer of a handle of this kind, which lives until handle_leave; or null with an
 * exception. */
static void *handle_enter(PyObject *object, const HandleKind *kind) {
  Handle *handle = (Handle *)object;
  if (Py_TYPE(object) != handle_type || handle->kind != kind) {
    PyErr_Format(PyExc_TypeError, "a %s handle is wanted, not %.80s", kind->name,
                 Py_TYPE(object) == handle_type ? handle->kind->name : Py_TYPE(object)->tp_name);
    return NULL;
  }
  if (handle->pointer == NULL) {
    char text[80];
    snprintf(text, sizeof text, "the %s is closed", kind->name);
    raise_status(RRFP_ERR_CLOSED, text);
    return NULL;
  }
  if (!kind->shared && handle->users > 0) {
    char text[80];
    snprintf(text, sizeof text, "another thread is inside a call on this %s", kind->name);
    raise_status(RRFP_ERR_BUSY, text);
    return NULL;
  }
  if (handle->waiting) {
    raise_status(RRFP_ERR_BUSY, "another thread waits for a task of this rank");
    return NULL;
  }
  Py_INCREF(object);
  handle->users += 1;
  return handle->pointer;
}

static void handle_leave(Handle *handle) {
  handle->users -= 1;
  if (handle->users == 0 && handle->doomed != NULL) {
    void *doomed = handle->doomed;
    handle->doomed = NULL;
    handle_destroy(handle, doomed);
  }
  Py_DECREF(handle);
}

static PyObject *handle_new(void *pointer, const HandleKind *kind) {
  Handle *handle = PyObject_GC_New(Handle, handle_type);
  if (handle == NULL) {
    kind->destroy(pointer);
    return NULL;
  }
  handle->pointer = pointer;
  handle->doomed = NULL;
  handle->kind = kind;
  handle->users = 0;
  handle->woken = false;
  handle->waiting = false;
  handle->owner = NULL;
  handle->keep = NULL;
  PyObject_GC_Track(handle);
  return (PyObject *)handle;
}

static PyObject *handle_close(PyObject *self, PyObject *unused) {
  Handle *handle = (Handle *)self;
  void *pointer = handle->pointer;
  (void)unused;
  handle->pointer = NULL;
  if (pointer == NULL) Py_RETURN_NONE;
  if (handle->users == 0) {
    handle_destroy(handle, pointer);
  } else {
    handle->doomed = pointer;
    if (handle->kind->interrupt != NULL) handle->kind->interrupt(pointer);
  }
  Py_RETURN_NONE;
}

/* Keeps `object` until the handle is destroyed. */
static PyObject *handle_keep(PyObject *self, PyObject *object) {
  Handle *handle = (Handle *)self;
  PyObject *old = handle->keep;
  Py_INCREF(object);
  handle->keep = object;
  Py_XDECREF(old);
  Py_RETURN_NONE;
}

/* Lets this handle be a user of another one for as long as it lives. */
static PyObject *handle_use(PyObject *self, PyObject *other) {
  Handle *handle = (Handle *)self;
  if (Py_TYPE(other) != handle_type || handle->owner != NULL) {
    PyErr_SetString(PyExc_TypeError, "use() wants a handle, once");
    return NULL;
  }
  if (handle_enter(other, ((Handle *)other)->kind) == NULL) return NULL;
  handle->owner = (Handle *)other;
  Py_INCREF(other);
  Py_RETURN_NONE;
}

static PyObject *handle_closed(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(((Handle *)self)->pointer == NULL);
}

/* A log function often belongs to what has the pipeline. */
static int handle_traverse(PyObject *self, visitproc visit, void *arg) {
  Handle *handle = (Handle *)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(handle->keep);
  Py_VISIT(handle->owner); /* once for use() and once for handle_enter() */
  Py_VISIT(handle->owner);
  return 0;
}

/* The C library may call what is kept until it has destroyed the object. */
static int handle_clear(PyObject *self) {
  Py_DECREF(handle_close(self, NULL));
  return 0;
}

static void handle_dealloc(PyObject *self) {
  Handle *handle = (Handle *)self;
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (handle->pointer != NULL) handle_destroy(handle, handle->pointer);
  Py_CLEAR(handle->keep);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

static PyMethodDef handle_methods[] = {
    {"close", handle_close, METH_NOARGS, "Destroys it once no call is inside; again is harmless."},
    {"keep", handle_keep, METH_O, "Keeps an object until this is destroyed."},
    {"use", handle_use, METH_O, "Keeps another handle usable until this one is destroyed."},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef handle_getset[] = {{"closed", handle_closed, NULL, NULL, NULL},
                                      {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot handle_slots[] = {{Py_tp_dealloc, (void *)handle_dealloc},
                                     {Py_tp_traverse, (void *)handle_traverse},
                                     {Py_tp_clear, (void *)handle_clear},
                                     {Py_tp_methods, handle_methods},
                                     {Py_tp_getset, handle_getset},
                                     {Py_tp_doc, "Owns an object of the C library."},
                                     {0, NULL}};

static PyType_Spec handle_spec = {
    "rrfp._native.Handle", sizeof(Handle), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, handle_slots};

#endif /* RRFP_PYTHON_HANDLE_H */
