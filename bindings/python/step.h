/* SPDX-License-Identifier: Apache-2.0
 *
 * The pull loop, written by hand because it runs once per task and because waiting must notice
 * Ctrl-C, a handle that is closed, and the end of the program. The classes rrfp.Step and rrfp.Task
 * derive from StepBase, which iterates over the tasks of a rank, and TaskBase. A task refers to its
 * step, a step only to the number of the running task, so there are no cycles. Tasks, made by the
 * thousand, are no business of the garbage collector: a program that makes a cycle through one, by
 * keeping it in its step, leaks it.
 */
#ifndef RRFP_PYTHON_STEP_H
#define RRFP_PYTHON_STEP_H

#include <structmember.h>
#include <time.h>

#include "handle.h"

static const HandleKind rrfp_rank_kind;
/* Given by the package; see set_hooks. */
static PyObject *main_ended = NULL; /* a function: whether the main thread has ended */
static PyObject *kind_names = NULL; /* the tuple of rrfp.Kind */

/* ---- Waiting --------------------------------------------------------------------------------- */

enum { kSliceUs = 50 * 1000, kSlicesAfterMain = 20 };

/* 0 to go on waiting, 1 if the program ends, -1 with an exception (a signal). */
static int between_slices(int *slices_after_main) {
  if (PyErr_CheckSignals() < 0) return -1;
  if (main_ended == NULL) return 0;
  PyObject *ended = PyObject_CallNoArgs(main_ended);
  if (ended == NULL) return -1;
  if (ended == Py_True) *slices_after_main += 1;
  Py_DECREF(ended);
  /* A thread that outlives the main one may go on with its work, but a rank that then gets no task
   * for a second is one that was forgotten: the interpreter would wait for it for ever. */
  return *slices_after_main >= kSlicesAfterMain;
}

static int64_t monotonic_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* rrfp_rank_next in slices, without the interpreter's lock. Returns its status, or RRFP_AGAIN with
 * an exception. */
static rrfp_status wait_for_task(Handle *handle, rrfp_rank *rank, int64_t timeout_us,
                                 rrfp_task *task, rrfp_error *error) {
  const int64_t begin = timeout_us > 0 ? monotonic_us() : 0;
  int slices_after_main = 0;
  for (;;) {
    if (handle->woken) {
      handle->woken = false;
      return RRFP_AGAIN;
    }
    int64_t slice = kSliceUs;
    if (timeout_us > 0) {
      const int64_t left = timeout_us - (monotonic_us() - begin);
      if (left <= 0) return RRFP_AGAIN;
      if (left < slice) slice = left;
    }
    rrfp_status status;
    Py_BEGIN_ALLOW_THREADS
    status = rrfp_rank_next(rank, slice, task, error);
    Py_END_ALLOW_THREADS
    if (status != RRFP_AGAIN) return status;
    if (handle->pointer == NULL) {
      raise_status(RRFP_ERR_CLOSED, "the rank was closed while it waited");
      return RRFP_AGAIN;
    }
    const int ended = between_slices(&slices_after_main);
    if (ended > 0) {
      raise_status(RRFP_ERR_CLOSED, "the program has ended while the rank waited");
    }
    if (ended != 0) return RRFP_AGAIN;
  }
}

/* Ends the current or the next wait. */
static PyObject *rank_wake(PyObject *object) {
  Handle *handle = (Handle *)object;
  rrfp_error error;
  rrfp_status status = RRFP_OK;
  if (Py_TYPE(object) == handle_type && handle->waiting && handle->pointer != NULL) {
    handle->woken = true; /* the thread that waits keeps the rank alive */
    status = rrfp_rank_wake(handle->pointer, &error);
  } else {
    rrfp_rank *rank = handle_enter(object, &rrfp_rank_kind);
    if (rank == NULL) return NULL;
    handle->woken = true;
    status = rrfp_rank_wake(rank, &error);
    handle_leave(handle);
  }
  if (status < 0) {
    raise_error(&error);
    return NULL;
  }
  Py_RETURN_NONE;
}

/* ---- StepBase -------------------------------------------------------------------------------- */

typedef struct {
  PyObject_HEAD
  PyObject *handle; /* of the rank */
  PyTypeObject *task_type;
  uint64_t running; /* the ticket of the task in the program's hands; 0 = none */
  bool finished;    /* the last look for a task found that all are done */
} StepBase;

typedef struct {
  PyObject_HEAD
  StepBase *step;
  PyObject *kind;
  uint64_t ticket;
  int32_t stage;
  int32_t microbatch;
  uint32_t flags;
} TaskBase;

/* Tells the rank and the class of its tasks: a subclass of TaskBase without fields of its own. */
static PyObject *step_bind(PyObject *object, PyObject *args) {
  StepBase *self = (StepBase *)object;
  PyObject *handle, *task_type;
  if (!PyArg_ParseTuple(args, "O!O!", handle_type, &handle, &PyType_Type, &task_type)) return NULL;
  Py_XSETREF(self->handle, Py_NewRef(handle));
  Py_XSETREF(self->task_type, (PyTypeObject *)Py_NewRef(task_type));
  Py_RETURN_NONE;
}

static PyObject *make_task(StepBase *step, const rrfp_task *task) {
  TaskBase *made = (TaskBase *)step->task_type->tp_alloc(step->task_type, 0);
  if (made == NULL) return NULL;
  PyObject *kind = NULL;
  if (kind_names != NULL && task->kind >= 0 && task->kind < PyTuple_GET_SIZE(kind_names)) {
    kind = Py_NewRef(PyTuple_GET_ITEM(kind_names, task->kind));
  } else {
    kind = PyLong_FromLong(task->kind); /* of a newer library */
  }
  made->step = (StepBase *)Py_NewRef((PyObject *)step);
  made->kind = kind;
  made->ticket = task->ticket;
  made->stage = task->stage;
  made->microbatch = task->microbatch;
  made->flags = task->flags;
  step->running = task->ticket;
  return (PyObject *)made;
}

/* The next task. At the time-out, after a wake and at the end of the step null without an
 * exception. What is ready is handed out without giving up the interpreter's lock. */
static PyObject *step_pull(StepBase *self, int64_t timeout_us, rrfp_status *status) {
  rrfp_error error;
  rrfp_task task;
  if (self->handle == NULL) {
    PyErr_SetString(PyExc_RuntimeError, "a step without a rank");
    return NULL;
  }
  rrfp_rank *rank = handle_enter(self->handle, &rrfp_rank_kind);
  if (rank == NULL) return NULL;
  rrfp_task_init(&task);
  *status = rrfp_rank_next(rank, 0, &task, &error);
  if (*status == RRFP_AGAIN && timeout_us != 0) {
    ((Handle *)self->handle)->waiting = true;
    *status = wait_for_task((Handle *)self->handle, rank, timeout_us, &task, &error);
    ((Handle *)self->handle)->waiting = false;
  }
  handle_leave((Handle *)self->handle);
  if (*status < 0) raise_error(&error);
  self->finished = *status == RRFP_STEP_DONE;
  return *status == RRFP_OK ? make_task(self, &task) : NULL;
}

static PyObject *step_iternext(PyObject *object) {
  rrfp_status status;
  PyObject *task;
  do { /* a wake does not end the iteration */
    status = RRFP_STEP_DONE;
    task = step_pull((StepBase *)object, -1, &status);
  } while (task == NULL && status == RRFP_AGAIN && !PyErr_Occurred());
  return task;
}

static PyObject *step_next(PyObject *object, PyObject *timeout_us) {
  rrfp_status status;
  const long long timeout = PyLong_AsLongLong(timeout_us);
  if (timeout == -1 && PyErr_Occurred()) return NULL;
  PyObject *task = step_pull((StepBase *)object, timeout, &status);
  return task != NULL || PyErr_Occurred() ? task : Py_NewRef(Py_None);
}

static int step_traverse(PyObject *object, visitproc visit, void *arg) {
  StepBase *self = (StepBase *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->handle);
  Py_VISIT(self->task_type);
  return 0;
}

static void step_dealloc(PyObject *object) {
  StepBase *self = (StepBase *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_CLEAR(self->handle);
  Py_CLEAR(self->task_type);
  type->tp_free(object);
  Py_DECREF(type);
}

static PyMethodDef step_methods[] = {
    {"_bind", step_bind, METH_VARARGS, "(rank handle, class of tasks)"},
    {"_next", step_next, METH_O, "The next task or None; waits for microseconds, < 0 = for ever."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef step_members[] = {
    {"_running", T_ULONGLONG, offsetof(StepBase, running), 0, "Ticket of the running task, or 0."},
    {"_finished", T_BOOL, offsetof(StepBase, finished), READONLY, NULL},
    {"_handle", T_OBJECT, offsetof(StepBase, handle), READONLY, "Of the rank."},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot step_slots[] = {
    {Py_tp_new, (void *)PyType_GenericNew},  {Py_tp_dealloc, (void *)step_dealloc},
    {Py_tp_traverse, (void *)step_traverse}, {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)step_iternext}, {Py_tp_methods, step_methods},
    {Py_tp_members, step_members},           {0, NULL}};

static PyType_Spec step_spec = {"rrfp._native.StepBase", sizeof(StepBase), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                                step_slots};

/* ---- TaskBase -------------------------------------------------------------------------------- */

static PyObject *task_done(PyObject *object, PyObject *unused) {
  TaskBase *self = (TaskBase *)object;
  rrfp_error error;
  rrfp_events events = 0;
  (void)unused;
  rrfp_rank *rank = handle_enter(self->step->handle, &rrfp_rank_kind);
  if (rank == NULL) return NULL;
  const rrfp_status status = rrfp_rank_done(rank, self->ticket, &events, &error);
  handle_leave((Handle *)self->step->handle);
  if (status < 0) {
    raise_error(&error);
    return NULL;
  }
  if (self->step->running == self->ticket) self->step->running = 0;
  return PyLong_FromUnsignedLong(events);
}

static PyObject *task_enter(PyObject *object, PyObject *unused) {
  (void)unused;
  return Py_NewRef(object);
}

static void task_dealloc(PyObject *object) {
  TaskBase *self = (TaskBase *)object;
  PyTypeObject *type = Py_TYPE(object);
  Py_CLEAR(self->step);
  Py_CLEAR(self->kind);
  type->tp_free(object);
  Py_DECREF(type);
}

static PyMethodDef task_methods[] = {
    {"done", task_done, METH_NOARGS,
     "The task is done: its outputs are sent. Returns flags of rrfp.Events."},
    {"__enter__", task_enter, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef task_members[] = {
    {"step", T_OBJECT, offsetof(TaskBase, step), READONLY, "The rrfp.Step it belongs to."},
    {"kind", T_OBJECT, offsetof(TaskBase, kind), READONLY, "What to compute, an rrfp.Kind."},
    {"ticket", T_ULONGLONG, offsetof(TaskBase, ticket), READONLY, "Names this hand-out."},
    {"stage", T_INT, offsetof(TaskBase, stage), READONLY, "Its stage."},
    {"microbatch", T_INT, offsetof(TaskBase, microbatch), READONLY, "Its microbatch."},
    {"_flags", T_UINT, offsetof(TaskBase, flags), READONLY, "RRFP_TASK_LOSS"},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot task_slots[] = {{Py_tp_dealloc, (void *)task_dealloc},
                                   {Py_tp_methods, task_methods},
                                   {Py_tp_members, task_members},
                                   {0, NULL}};

static PyType_Spec task_spec = {
    "rrfp._native.TaskBase", sizeof(TaskBase), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, task_slots};

#endif /* RRFP_PYTHON_STEP_H */
