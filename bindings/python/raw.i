/* SPDX-License-Identifier: Apache-2.0
 *
 * The raw layer: every function, struct and constant of the C headers under its C name, generated
 * by SWIG into the module rrfp._raw (and rrfp._native, the compiled part). What it adds, for all of
 * them in the same way:
 *
 *   errors      a negative status is raised as the exception that rrfp/errors.py makes of it
 *   outputs     are results; a status that is not an error is not, except where it matters (step.h)
 *   handles     are owned objects, see handle.h
 *   structs     come prepared by their _init function. A pointer put into a struct (a name, an
 *               array, a hint) is borrowed: its object must live as long as the struct is used
 *   arrays      are objects with the buffer protocol; nobody checks their length here
 *   text        calls take the capacity and give (bytes, bytes needed)
 *   lock        the interpreter's lock is given up around what may compute or wait
 */
%module(package="rrfp") _raw

%{
#include <stdio.h>
#include <string.h>

#include "callbacks.h"
#include "handle.h"
#include "step.h"
#include "task_io.h"
#include "tensor.h"
%}

%include <stdint.i>

/* ---- Errors and statuses --------------------------------------------------------------------- */

/* Without a block of its own, so that the name is known to the typemap of the status below. */
%typemap(in, numinputs=0, noblock=1) rrfp_error *error {
  rrfp_error failure;
  $1 = &failure;
}
%typemap(out) rrfp_status {
  if ($1 < 0) {
    raise_error(&failure);
    SWIG_fail;
  }
  $result = SWIG_Py_Void();
}
/* RRFP_OK or RRFP_ABSENT. */
%typemap(out) rrfp_status rrfp_rank_output_wanted {
  if ($1 < 0) {
    raise_error(&failure);
    SWIG_fail;
  }
  $result = PyBool_FromLong($1 == RRFP_OK);
}
%typemap(out) PyObject * {
  $result = $1;
  if ($result == NULL) SWIG_fail;
}

/* ---- The interpreter's lock ------------------------------------------------------------------ */

%define RRFP_UNLOCKED(function)
%exception function {
  Py_BEGIN_ALLOW_THREADS
  $action
  Py_END_ALLOW_THREADS
}
%enddef
RRFP_UNLOCKED(rrfp_hint_create_from_text)
RRFP_UNLOCKED(rrfp_hint_to_text)
RRFP_UNLOCKED(rrfp_hint_lower)
RRFP_UNLOCKED(rrfp_hint_check)
RRFP_UNLOCKED(rrfp_hint_write_trace)
RRFP_UNLOCKED(rrfp_pipeline_create)
RRFP_UNLOCKED(rrfp_pipeline_cancel)
RRFP_UNLOCKED(rrfp_pipeline_reset)
RRFP_UNLOCKED(rrfp_pipeline_report)
RRFP_UNLOCKED(rrfp_pipeline_write_trace)
RRFP_UNLOCKED(rrfp_rank_begin_step)
RRFP_UNLOCKED(rrfp_rank_end_step)
RRFP_UNLOCKED(rrfp_model_create_from_checkpoint)
RRFP_UNLOCKED(rrfp_model_measure)
RRFP_UNLOCKED(rrfp_trainer_create)
RRFP_UNLOCKED(rrfp_trainer_step)
RRFP_UNLOCKED(rrfp_trainer_evaluate)
RRFP_UNLOCKED(rrfp_trainer_cancel)
RRFP_UNLOCKED(rrfp_trainer_read)
RRFP_UNLOCKED(rrfp_trainer_write)
RRFP_UNLOCKED(rrfp_trainer_weights_sha256)
RRFP_UNLOCKED(rrfp_trainer_write_trace)
RRFP_UNLOCKED(rrfp_trainer_save)
RRFP_UNLOCKED(rrfp_trainer_load)
RRFP_UNLOCKED(rrfp_checkpoint_describe)
RRFP_UNLOCKED(rrfp_data_open)
RRFP_UNLOCKED(rrfp_data_read)
RRFP_UNLOCKED(rrfp_generator_create)
RRFP_UNLOCKED(rrfp_generator_start)
RRFP_UNLOCKED(rrfp_generator_next)
RRFP_UNLOCKED(rrfp_samples_open)
RRFP_UNLOCKED(rrfp_samples_read)
RRFP_UNLOCKED(rrfp_samples_read_at)
RRFP_UNLOCKED(rrfp_picture_read)
RRFP_UNLOCKED(rrfp_generator_start_inputs)
RRFP_UNLOCKED(rrfp_simulation_create)
RRFP_UNLOCKED(rrfp_simulation_run)
RRFP_UNLOCKED(rrfp_simulation_write_trace)
RRFP_UNLOCKED(rrfp_simulation_stress)
RRFP_UNLOCKED(rrfp_trace_draw)
RRFP_UNLOCKED(rrfp_trace_summarize)

/* ---- Handles --------------------------------------------------------------------------------- */

/* shared: whether several threads may be inside calls, or the library itself refuses them. */
%define RRFP_HANDLE(name, shared, interrupt)
%{
static void destroy_##name(void *pointer) { rrfp_##name##_destroy(pointer); }
static const HandleKind rrfp_##name##_kind = {#name, destroy_##name, shared, interrupt};
%}
%typemap(in) rrfp_##name * (Handle *handle = NULL) {
  $1 = handle_enter($input, &rrfp_##name##_kind);
  if ($1 == NULL) SWIG_fail;
  handle = (Handle *)$input;
}
%typemap(freearg) rrfp_##name * {
  if (handle$argnum != NULL) handle_leave(handle$argnum);
}
%apply rrfp_##name * { const rrfp_##name * };
%typemap(in, numinputs=0) rrfp_##name **out (rrfp_##name *made = NULL) {
  $1 = &made;
}
%typemap(argout) rrfp_##name **out {
  $result = SWIG_Python_AppendOutput($result, handle_new(*$1, &rrfp_##name##_kind));
}
%ignore rrfp_##name##_destroy;
%enddef
%{
static void interrupt_rank(void *pointer) { rrfp_rank_wake(pointer, NULL); }
static void interrupt_trainer(void *pointer) { rrfp_trainer_cancel(pointer, NULL); }
%}
RRFP_HANDLE(graph, false, NULL)
RRFP_HANDLE(hint, true, NULL)
RRFP_HANDLE(pipeline, true, NULL)
RRFP_HANDLE(rank, true, interrupt_rank)
RRFP_HANDLE(model, false, NULL)
RRFP_HANDLE(trainer, true, interrupt_trainer)
RRFP_HANDLE(data, true, NULL)
RRFP_HANDLE(generator, false, NULL)
RRFP_HANDLE(samples, false, NULL)
RRFP_HANDLE(simulation, false, NULL)

/* ---- Structs --------------------------------------------------------------------------------- */

%define RRFP_STRUCT(name)
%extend name {
  name() {
    struct name *self = calloc(1, sizeof *self);
    if (self != NULL) name##_init(self);
    return self;
  }
  ~name() { free($self); }
}
%ignore name##_init;
%enddef

/* Structs that a call fills in are its result. */
%define RRFP_REPORT(name)
RRFP_STRUCT(name)
%typemap(in, numinputs=0) name *out {
  $1 = calloc(1, sizeof *$1);
  if ($1 == NULL) {
    PyErr_NoMemory();
    SWIG_fail;
  }
  name##_init($1);
}
%typemap(argout) name *out {
  PyObject *made = SWIG_NewPointerObj($1, $1_descriptor, SWIG_POINTER_OWN);
  $result = SWIG_Python_AppendOutput($result, made);
  $1 = NULL;
}
%typemap(freearg) name *out { free($1); }
%enddef

RRFP_STRUCT(rrfp_stage_options)
RRFP_STRUCT(rrfp_pipeline_options)
RRFP_STRUCT(rrfp_step_options)
RRFP_STRUCT(rrfp_parameter_options)
RRFP_STRUCT(rrfp_operation)
RRFP_STRUCT(rrfp_gpt_options)
RRFP_STRUCT(rrfp_trainer_options)
RRFP_STRUCT(rrfp_batch)
RRFP_STRUCT(rrfp_save_options)
RRFP_STRUCT(rrfp_data_options)
RRFP_STRUCT(rrfp_sampling)
RRFP_STRUCT(rrfp_vision_options)
RRFP_STRUCT(rrfp_samples_options)
RRFP_STRUCT(rrfp_simulation_options)
RRFP_REPORT(rrfp_hint_info)
RRFP_REPORT(rrfp_step_report)
RRFP_REPORT(rrfp_model_info)
RRFP_REPORT(rrfp_train_report)
RRFP_REPORT(rrfp_trainer_info)
RRFP_REPORT(rrfp_stage_report)
RRFP_REPORT(rrfp_data_info)
RRFP_REPORT(rrfp_samples_info)
RRFP_REPORT(rrfp_simulated_step)
RRFP_REPORT(rrfp_stress_report)

/* ---- Numbers, arrays and text ---------------------------------------------------------------- */

%define RRFP_NUMBER_OUT(type, make, name)
%typemap(in, numinputs=0) type *name (type number = 0) { $1 = &number; }
%typemap(argout) type *name { $result = SWIG_Python_AppendOutput($result, make(*$1)); }
%enddef
RRFP_NUMBER_OUT(int32_t, PyLong_FromLong, out_stage)
RRFP_NUMBER_OUT(int32_t, PyLong_FromLong, out_edge)
RRFP_NUMBER_OUT(int32_t, PyLong_FromLong, out_block)
RRFP_NUMBER_OUT(int32_t, PyLong_FromLong, out_value)
RRFP_NUMBER_OUT(int32_t, PyLong_FromLong, out_parameter)
RRFP_NUMBER_OUT(int32_t, PyLong_FromLong, out_token)
RRFP_NUMBER_OUT(int32_t, PyLong_FromLong, out_placement)
RRFP_NUMBER_OUT(int32_t, PyLong_FromLong, out_chunks)
RRFP_NUMBER_OUT(int32_t, PyLong_FromLong, out_streams)
RRFP_NUMBER_OUT(uint64_t, PyLong_FromUnsignedLongLong, out_position)
RRFP_NUMBER_OUT(rrfp_events, PyLong_FromUnsignedLong, out_events)

/* Numbers of any kind, such as those of NumPy, which SWIG's own conversions would refuse. */
%{
static PyObject *read_float(PyObject *object) {
  const double number = PyFloat_AsDouble(object);
  return PyErr_Occurred() ? NULL : PyFloat_FromDouble(number);
}
%}
%define RRFP_NUMBER_IN(type, name, read)
%typemap(in, fragment="SWIG_AsVal_" #name) type (PyObject *number, int problem) {
  number = read($input);
  if (number == NULL) PyErr_Clear();
  problem = SWIG_AsVal_##name(number != NULL ? number : $input, &$1);
  Py_XDECREF(number);
  if (!SWIG_IsOK(problem)) {
    %argument_fail(problem, #type, $symname, $argnum);
  }
}
%enddef
RRFP_NUMBER_IN(int32_t, int, PyNumber_Index)
RRFP_NUMBER_IN(uint32_t, unsigned_SS_int, PyNumber_Index)
RRFP_NUMBER_IN(int64_t, long, PyNumber_Index)
RRFP_NUMBER_IN(uint64_t, unsigned_SS_long, PyNumber_Index)
RRFP_NUMBER_IN(double, double, read_float)

/* Extents, from a sequence of numbers. */
%typemap(in) (int32_t ndim, const int64_t *shape) (int64_t extents[RRFP_DIMS_MAX]) {
  const Py_ssize_t count = PySequence_Size($input);
  if (count < 0) SWIG_fail;
  for (Py_ssize_t d = 0; d < count && d < RRFP_DIMS_MAX; ++d) {
    PyObject *item = PySequence_GetItem($input, d);
    extents[d] = item != NULL ? PyLong_AsLongLong(item) : -1;
    Py_XDECREF(item);
    if (PyErr_Occurred()) SWIG_fail;
  }
  $1 = (int32_t)count; /* too many are refused by the library, which does not read them */
  $2 = extents;
}
%typemap(in, numinputs=0) (int32_t *out_ndim, int64_t *shape) (int32_t ndim = 0,
                                                               int64_t extents[RRFP_DIMS_MAX]) {
  $1 = &ndim;
  $2 = extents;
}
%typemap(argout) (int32_t *out_ndim, int64_t *shape) {
  PyObject *shape = PyTuple_New(*$1);
  for (int32_t d = 0; shape != NULL && d < *$1; ++d) {
    PyTuple_SET_ITEM(shape, d, PyLong_FromLongLong($2[d]));
  }
  $result = SWIG_Python_AppendOutput($result, shape);
}

/* Arrays: any object with the buffer protocol, or None. In a struct the pointer is borrowed. */
%define RRFP_ARRAY(type, flags)
%typemap(in) type (Py_buffer view) {
  view.obj = NULL;
  if ($input == Py_None) {
    $1 = NULL;
  } else {
    if (PyObject_GetBuffer($input, &view, flags) < 0) SWIG_fail;
    $1 = view.buf;
  }
}
%typemap(freearg) type {
  if (view$argnum.obj != NULL) PyBuffer_Release(&view$argnum);
}
%enddef
RRFP_ARRAY(const int64_t *, PyBUF_SIMPLE)
RRFP_ARRAY(const int32_t *, PyBUF_SIMPLE)
RRFP_ARRAY(const uint8_t *, PyBUF_SIMPLE)
RRFP_ARRAY(const uint64_t *, PyBUF_SIMPLE)
RRFP_ARRAY(const double *, PyBUF_SIMPLE)
RRFP_ARRAY(int64_t *block_ns, PyBUF_WRITABLE)
RRFP_ARRAY(int32_t *first_blocks, PyBUF_WRITABLE)
RRFP_ARRAY(int32_t *stage_ranks, PyBUF_WRITABLE)
RRFP_ARRAY(int32_t *tokens, PyBUF_WRITABLE)
RRFP_ARRAY(int32_t *targets, PyBUF_WRITABLE)
RRFP_ARRAY(float *pixels, PyBUF_WRITABLE)

%define RRFP_COUNTED_ARRAY(type, name, flags)
%typemap(in) (type *name, size_t count) (Py_buffer view) {
  view.obj = NULL;
  if (PyObject_GetBuffer($input, &view, flags) < 0) SWIG_fail;
  $1 = view.buf;
  $2 = (size_t)view.len / sizeof *$1;
}
%typemap(freearg) (type *name, size_t count) {
  if (view$argnum.obj != NULL) PyBuffer_Release(&view$argnum);
}
%enddef
RRFP_COUNTED_ARRAY(float, data, PyBUF_WRITABLE)
RRFP_COUNTED_ARRAY(const float, data, PyBUF_SIMPLE)
RRFP_COUNTED_ARRAY(float, logits, PyBUF_WRITABLE)
RRFP_COUNTED_ARRAY(double, losses, PyBUF_WRITABLE)
RRFP_COUNTED_ARRAY(const int32_t, tokens, PyBUF_SIMPLE)

/* Entries of a hint, from a sequence of (rank, stage, kind, microbatch, priority). */
%typemap(in) (const rrfp_hint_task *tasks, size_t count) {
  PyObject *tuple = PySequence_Tuple($input);
  if (tuple == NULL) SWIG_fail;
  $2 = (size_t)PyTuple_GET_SIZE(tuple);
  $1 = PyMem_Calloc($2 + 1, sizeof *$1);
  for (size_t i = 0; $1 != NULL && i < $2; ++i) {
    rrfp_hint_task *task = (rrfp_hint_task *)&$1[i];
    long long priority = 0;
    PyObject *item = PyTuple_GET_ITEM(tuple, (Py_ssize_t)i);
    if (!PyTuple_Check(item)) {
      PyErr_SetString(PyExc_TypeError, "an entry of a hint is not a tuple");
      break;
    }
    if (!PyArg_ParseTuple(item, "iiiiL", &task->rank, &task->stage, &task->kind,
                          &task->microbatch, &priority)) {
      break;
    }
    task->priority = priority;
  }
  Py_DECREF(tuple);
  if ($1 == NULL) PyErr_NoMemory();
  if (PyErr_Occurred()) SWIG_fail;
}
%typemap(freearg) (const rrfp_hint_task *tasks, size_t count) { PyMem_Free((void *)$1); }

%typemap(in) const rrfp_tensor * {
  if (Py_TYPE($input) != tensors_type) {
    PyErr_SetString(PyExc_TypeError, "an object made by tensors() is wanted");
    SWIG_fail;
  }
  $1 = ((Tensors *)$input)->array;
}

/* A batch that was read, as a list of (element type, shape, bytes). Copies: its memory is that of the
 * handle, until the next call on it, and nothing would stop a NumPy array from being used afterwards. */
%typemap(in, numinputs=0) rrfp_batch *out_batch (rrfp_batch batch) {
  rrfp_batch_init(&batch);
  $1 = &batch;
}
%typemap(argout) rrfp_batch *out_batch {
  PyObject *list = copy_tensors($1->inputs, (Py_ssize_t)$1->microbatches * RRFP_SAMPLES_INPUTS);
  if (list == NULL) SWIG_fail;
  $result = SWIG_Python_AppendOutput($result, list);
}

%typemap(in) (const char *text, size_t length) {
  Py_ssize_t length = 0;
  $1 = (char *)PyUnicode_AsUTF8AndSize($input, &length);
  if ($1 == NULL) SWIG_fail;
  $2 = (size_t)length;
}
/* Text in; a pointer put into a struct is borrowed from the str. */
%typemap(in) const char * {
  $1 = NULL;
  if ($input != Py_None && ($1 = (char *)text_in($input)) == NULL) SWIG_fail;
}
%typemap(freearg) const char * ""
%typemap(memberin) const char * "$1 = $input;"
/* A list of names for the struct, made by names() in callbacks.h. */
%typemap(in) const char *const * {
  $1 = PyCapsule_GetPointer($input, "rrfp names");
  if ($1 == NULL) SWIG_fail;
}
%typemap(out) const char *const * "$result = SWIG_Py_Void();"

%typemap(in) (char *buffer, size_t capacity, size_t *out_size) (PyObject *bytes = NULL,
                                                                size_t needed = 0) {
  const Py_ssize_t capacity = PyLong_AsSsize_t($input);
  if (capacity < 0) SWIG_fail;
  bytes = PyBytes_FromStringAndSize(NULL, capacity);
  if (bytes == NULL) SWIG_fail;
  $1 = PyBytes_AS_STRING(bytes);
  $2 = (size_t)capacity;
  $3 = &needed;
}
%typemap(argout) (char *buffer, size_t capacity, size_t *out_size) {
  /* Without the zero byte; what was cut is of no use. */
  PyObject *text = PyBytes_FromStringAndSize($1, *$3 > $2 || *$3 == 0 ? 0 : (Py_ssize_t)*$3 - 1);
  $result = SWIG_Python_AppendOutput($result, text);
  $result = SWIG_Python_AppendOutput($result, PyLong_FromSize_t(*$3));
}
%typemap(freearg) (char *buffer, size_t capacity, size_t *out_size) { Py_XDECREF(bytes$argnum); }

/* Nobody is called back: rrfp.stress() makes short runs instead. A thread that Python ends while it waits
 * for the lock must not do so inside of C++ code. */
%typemap(in, numinputs=0) (rrfp_progress_fn progress, void *user_data) "$1 = NULL; $2 = NULL;"

/* ---- What is written by hand instead --------------------------------------------------------- */

%ignore rrfp_error;
%ignore rrfp_tensor;
%ignore rrfp_task;
%ignore rrfp_task_init;
%ignore rrfp_hint_task;
%ignore rrfp_rank_next;
%ignore rrfp_rank_wake;
%ignore rrfp_rank_input;
%ignore rrfp_rank_alloc;
%ignore rrfp_rank_wrap;
%ignore rrfp_rank_put;
%ignore rrfp_rank_wrap_dlpack;
%ignore rrfp_tensor_from_dlpack;
%ignore rrfp_tensor_to_dlpack;
%ignore rrfp_buffer_retain;
%ignore rrfp_buffer_release;
%ignore rrfp_pipeline_options::log;
%ignore rrfp_pipeline_options::log_user_data;
%ignore rrfp_trainer_options::log;
%ignore rrfp_trainer_options::log_user_data;

#define RRFP_API
%include <rrfp/version.h>
%include <rrfp/rrfp.h>
%include <rrfp/train.h>
%include <rrfp/multimodal.h>
%include <rrfp/simulate.h>

PyObject *rank_wake(PyObject *object);
PyObject *rank_input(rrfp_rank *rank, uint64_t ticket, int32_t edge);
PyObject *rank_alloc(rrfp_rank *rank, uint64_t ticket, int32_t dtype, int32_t ndim,
                     const int64_t *shape);
PyObject *rank_put(rrfp_rank *rank, uint64_t ticket, int32_t edge, PyObject *objects,
                   PyObject *wants);
%rename(tensors) tensors_new;
PyObject *tensors_new(PyObject *objects);
PyObject *names(PyObject *strings);
void set_pipeline_log(rrfp_pipeline_options *options, PyObject *log);
void set_trainer_log(rrfp_trainer_options *options, PyObject *log);
void set_hooks(PyObject *make_error, PyObject *has_main_ended, PyObject *kinds);

%{
static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec) {
  PyObject *type = PyType_FromSpec(spec);
  const char *name = strrchr(spec->name, '.') + 1;
  if (type == NULL || PyModule_AddObjectRef(module, name, type) < 0) return NULL;
  return (PyTypeObject *)type;
}
%}
%init %{
  handle_type = add_type(m, &handle_spec);
  tensor_type = add_type(m, &tensor_spec);
  tensors_type = add_type(m, &tensors_spec);
  if (handle_type == NULL || tensor_type == NULL || tensors_type == NULL ||
      add_type(m, &step_spec) == NULL || add_type(m, &task_spec) == NULL) {
    return NULL;
  }
%}
