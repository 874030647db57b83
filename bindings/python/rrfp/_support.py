# SPDX-License-Identifier: Apache-2.0
"""What the classes of the package share: text and structs of the raw layer, threads that run calls,
and the orderly end of a program that has forgotten to close things."""

from __future__ import annotations

import atexit
import dataclasses
import logging
import math
import os
import queue
import threading
import weakref
from typing import Any, Callable, TypeVar

import numpy

from . import _native, _raw, errors
from .enums import Kind

_T = TypeVar("_T")

logger = logging.getLogger("rrfp")
logger.addHandler(logging.NullHandler())

_LOG_LEVELS = {_raw.RRFP_LOG_INFO: logging.INFO, _raw.RRFP_LOG_WARNING: logging.WARNING,
               _raw.RRFP_LOG_ERROR: logging.ERROR}


def log_function(log: Any) -> Callable[[int, str], object]:
    """A function for the raw layer, which has levels of its own, from how objects report: to a
    logger (None = the logger "rrfp"), or by f(level, text) with a level of the module logging. It
    is called on the thread that is inside a call, or on one that a trainer owns."""
    call = log if callable(log) else (logger if log is None else log).log
    return lambda level, text: call(_LOG_LEVELS.get(level, logging.ERROR), text)


def text_of(call: Callable[..., tuple[bytes, int]], *args: Any) -> str:
    """The text of a call that takes a capacity as its last argument."""
    size = 4096
    while True:
        text, needed = call(*args, size)
        if needed <= size:
            return text.decode("utf-8", "replace")
        size = needed


def fill(options: Any, **fields: Any) -> Any:
    """Sets fields of a struct. Pointers in it are borrowed, so their objects are kept beside it."""
    for name, value in fields.items():
        if value is not None:
            setattr(options, name, value)
    options.kept = fields
    return options


def report_of(cls: Callable[..., _T], raw: Any) -> _T:
    """A dataclass with the fields of a struct."""
    return cls(**{f.name: getattr(raw, f.name) for f in dataclasses.fields(cls)})  # type: ignore


def integers(values: Any, dtype: Any) -> numpy.ndarray:
    """A contiguous array of whole numbers. Others are refused, not cut."""
    array = numpy.asarray(values)
    if array.size and array.dtype.kind not in "iub":
        raise TypeError(f"whole numbers are wanted, not {array.dtype}")
    limits = numpy.iinfo(dtype)
    if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
        raise OverflowError(f"a number does not fit into {numpy.dtype(dtype)}")
    return numpy.ascontiguousarray(array, dtype=dtype)


def milliseconds(seconds: float) -> int:
    """Of a watchdog: 0 = the default, negative = never, and nothing else becomes these."""
    return -1 if seconds < 0 else math.ceil(seconds * 1000)


# ---- Threads ------------------------------------------------------------------------------------


class Worker:
    """A daemon thread that runs one call after another."""

    def __init__(self, name: str):
        self._calls: queue.SimpleQueue = queue.SimpleQueue()
        self._process = os.getpid()
        threading.Thread(target=Worker._run, args=(self._calls,), name=name, daemon=True).start()

    @staticmethod  # without a reference to the worker, whose end ends the thread
    def _run(calls: queue.SimpleQueue) -> None:
        while True:
            call = calls.get()
            if call is None:
                return
            call()
            del call  # or what it holds would live until the next one

    def submit(self, call: Callable[[], _T]) -> "Outcome[_T]":
        if self._process != os.getpid():
            raise errors._from_status(
                _raw.RRFP_ERR_FORKED, -1, -1, -1, -1, 0,
                "the object was made before fork() and this is the child, without its threads")
        outcome: Outcome[_T] = Outcome()
        self._calls.put(lambda: outcome.run(call))
        return outcome

    def drain(self) -> None:
        """Waits until all calls so far have ended."""
        self.submit(lambda: None).wait()

    def __del__(self) -> None:
        self._calls.put(None)


class Outcome:
    """The result of a call on another thread, or its exception."""

    def __init__(self) -> None:
        self._done = False
        self._running = threading.Lock()  # held until it is done; its waiter may take it then
        self._running.acquire()
        self.error: BaseException | None = None
        self.value: Any = None

    __class_getitem__ = classmethod(lambda cls, item: cls)

    def run(self, call: Callable[[], Any]) -> None:
        try:
            self.value = call()
        except BaseException as error:  # it is the caller's
            self.error = error
        self._done = True
        self._running.release()

    def wait(self) -> None:
        """Waits, one thread at a time. It may be interrupted anywhere and begun again."""
        while not self._done:
            self._running.acquire()

    def take_error(self) -> BaseException | None:
        """The exception, once: its traceback refers to frames that refer to this object."""
        error, self.error = self.error, None
        return error

    def get(self) -> Any:
        error = self.take_error()
        if error is not None:
            try:
                raise error
            finally:
                del error  # the traceback now refers to this frame too
        return self.value


def on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


# ---- The end of the program ---------------------------------------------------------------------

_open: "weakref.WeakSet[Any]" = weakref.WeakSet()


def close_at_exit(obj: Any) -> None:
    """Has obj.close() called when the interpreter ends, while its threads can still leave their
    calls."""
    _open.add(obj)


@atexit.register
def _close_all() -> None:
    for obj in list(_open):
        try:
            obj.close()
        except errors.Error as error:
            logger.debug("closing at exit: %s", error)


_native.set_hooks(errors._from_status, lambda: not threading.main_thread().is_alive(), tuple(Kind))
