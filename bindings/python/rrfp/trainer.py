# SPDX-License-Identifier: Apache-2.0
"""Training a model: weights, optimizer, checkpoints, and text from what was learnt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Callable, Iterator, Sequence

import numpy

from . import _native, _raw, errors
from ._support import (Worker, close_at_exit, fill, integers, log_function, milliseconds,
                       on_main_thread, report_of, text_of)
from .data import Data
from .enums import (Decay, Injection, NonFinitePolicy, Optimizer, Order, Placement, Reduction,
                    Slot, Wake, parse)
from .graph import Hint, hint_of
from .model import Model, as_input
from .reports import StageReport, StepReport, TrainReport
from .samples import INPUT_TYPES, Samples
from .tasks import quietly
from .trace import Trace

__all__ = ["Trainer", "TrainerInfo", "Generator", "describe_checkpoint"]


@dataclass(frozen=True)
class TrainerInfo:
    stages: int
    ranks: int
    parameters: int
    steps: int  #: done; a loaded checkpoint counts
    updates: int  #: of these, those that changed the weights
    seed: int


class Trainer:
    """Weights, optimizer and a thread for each rank. One thread at a time may use it.

    Losses, gradients and weights are the same to the bit for every number of stages, placement,
    hint, order, cap and recompute flag, unless `nondeterministic`. Making one sets OpenBLAS to one
    thread for the whole process, since each rank is a thread.

    Args:
        model: copied.
        stages, ranks: of the pipeline; ranks = stages by default, for the placements "v" and "loop"
            half.
        placement, order, wake, hold_permille, cap_slots, cap_bytes: as for :class:`rrfp.Pipeline`.
        first_blocks: the first block of each stage, as :meth:`Model.partition` gives them.
        stage_ranks: the rank of each stage, as :meth:`Model.place` gives them, instead of a
            placement.
        hint: None = "zb-h1"; "auto" = what is fastest when the last steps are replayed in the
            simulator.
        watchdog: seconds; 0 = 600, negative = never.
        optimizer: "adamw" or "sgd"; with lr, beta1, beta2, epsilon, weight_decay, momentum.
        decay, lr_min, warmup_steps, decay_steps: how lr changes: "none", "cosine" or "linear".
        clip_norm: gradients are scaled down to this global norm; 0 = not.
        reduction: of the losses of a batch, "mean" or "sum".
        non_finite: "stop" raises :class:`rrfp.NonFinite`, weights as before; "skip" skips the step.
        loss_scale, loss_scale_growth: a power of two, halved by skipped steps; 0 = off.
        recompute: as if every block had it.
        trace_steps: keep the timeline of the last so many steps.
        injection: the order of the microbatches, "default", "data" or "tent".
        delay_us_max: for tests; holds up every task for a random time of up to so many
            microseconds.
        log: a logger, or f(level, text); by default the logger "rrfp".
    """

    def __init__(self, model: Model, *, stages: int = 1, ranks: int = 0,
                 placement: Placement | str = Placement.LINEAR, order: Order | str = Order.DEFAULT,
                 wake: Wake | str = Wake.YIELD, hold_permille: int = 0,
                 first_blocks: Sequence[int] | None = None,
                 stage_ranks: Sequence[int] | None = None, hint: Hint | str | None = None,
                 cap_slots: int = 0, cap_bytes: int = 0, watchdog: float = 0,
                 optimizer: Optimizer | str = Optimizer.ADAMW, lr: float = 1e-3,
                 decay: Decay | str = Decay.NONE, lr_min: float = 0.0, warmup_steps: int = 0,
                 decay_steps: int = 0, beta1: float = 0.9, beta2: float = 0.95,
                 epsilon: float = 1e-8, weight_decay: float = 0.1, momentum: float = 0.0,
                 clip_norm: float = 0.0, reduction: Reduction | str = Reduction.MEAN,
                 non_finite: NonFinitePolicy | str = NonFinitePolicy.STOP, loss_scale: float = 0.0,
                 loss_scale_growth: int = 0, seed: int = 0, nondeterministic: bool = False,
                 recompute: bool = False, trace_steps: int = 0,
                 injection: Injection | str = Injection.DEFAULT, delay_us_max: int = 0,
                 log: Any = None):
        auto = hint == "auto"
        named = None if hint is None or auto else hint_of(hint)
        blocks = _of_stages("first_blocks", first_blocks, stages)
        on_ranks = _of_stages("stage_ranks", stage_ranks, stages)
        self._log = log_function(log)
        options = fill(
            _raw.rrfp_trainer_options(), stages=stages, ranks=ranks,
            placement=parse(Placement, placement), order=parse(Order, order),
            wake=parse(Wake, wake), hold_permille=hold_permille, first_blocks=blocks,
            stage_ranks=on_ranks, hint=named and named._handle, cap_slots=cap_slots,
            cap_bytes=cap_bytes, watchdog_ms=milliseconds(watchdog),
            optimizer=parse(Optimizer, optimizer), decay=parse(Decay, decay), lr=lr,
            lr_min=lr_min, warmup_steps=warmup_steps, decay_steps=decay_steps, beta1=beta1,
            beta2=beta2, epsilon=epsilon, weight_decay=weight_decay, momentum=momentum,
            clip_norm=clip_norm, reduction=parse(Reduction, reduction),
            non_finite=parse(NonFinitePolicy, non_finite), loss_scale=loss_scale,
            loss_scale_growth=loss_scale_growth, seed=seed, trace_steps=trace_steps,
            injection=parse(Injection, injection), delay_us_max=delay_us_max,
            flags=(nondeterministic * _raw.RRFP_TRAINER_NONDETERMINISTIC
                   | recompute * _raw.RRFP_TRAINER_RECOMPUTE | auto * _raw.RRFP_TRAINER_AUTO))
        _native.set_trainer_log(options, self._log)
        self._handle = _raw.rrfp_trainer_create(model._handle, options)
        self._handle.keep(self._log)
        self._inputs = list(model._inputs)
        self._losses = model.info.losses
        self._names = {name: i for i, name in enumerate(model.parameter_names())}
        self._shapes = [model.parameter_shape(i) for i in range(len(self._names))]
        self._worker: Worker | None = None
        self._cancelled = False  # a cancel() of ours may still be waiting for a step to end
        close_at_exit(self)

    # ---- Steps ----------------------------------------------------------------------------------

    def step(self, batch: Sequence[Any], *, rounds: int = 1,
             loss_factors: Sequence[float] | None = None, keep_gradients: bool = False,
             random_step: int = 0) -> TrainReport:
        """One training step: forward and backward of every microbatch, clipping, the optimizer.

        After an error the weights are those before the step and the trainer can go on. Ctrl-C on
        the main thread ends the step and is raised.

        Args:
            batch: the microbatches; each a tuple with an array for each input of the model, in the
                order of adding (float32 or int32: NumPy, or whatever speaks DLPack; read in place
                if contiguous), or the array itself if there is one input. Extents may be 0, as for
                a microbatch without pictures.
            rounds: gradients add up over so many pipeline runs of equal length.
            loss_factors: a factor for the loss of each microbatch.
            keep_gradients: compute gradients, change nothing; see :meth:`read`.
            random_step: names the random numbers of the step (dropout); 0 = the count of steps.
        """
        flags = _raw.RRFP_BATCH_KEEP_GRADIENTS if keep_gradients else 0
        raw = self._batch(batch, loss_factors, flags=flags, rounds=rounds, random_step=random_step)
        return self._run(_raw.rrfp_trainer_step, raw)

    def evaluate(self, batch: Sequence[Any], *,
                 loss_factors: Sequence[float] | None = None) -> TrainReport:
        """The loss of a batch, without dropout; changes nothing. As for Ctrl-C, see
        :meth:`step`."""
        return self._run(_raw.rrfp_trainer_evaluate, self._batch(batch, loss_factors))

    def _batch(self, batch: Sequence[Any], loss_factors: Any, **fields: Any) -> Any:
        arrays = []
        for m, microbatch in enumerate(batch):
            row = microbatch if isinstance(microbatch, (tuple, list)) else (microbatch,)
            if len(row) != len(self._inputs):
                raise ValueError(f"microbatch {m} has {len(row)} arrays; the model has "
                                 f"{len(self._inputs)} inputs")
            arrays += [as_input(array, code) for array, code in zip(row, self._inputs)]
        factors = None
        if loss_factors is not None:
            factors = numpy.ascontiguousarray(loss_factors, dtype=numpy.float64)
            if factors.shape != (len(batch),):
                raise ValueError(f"loss_factors has shape {factors.shape}; {len(batch)} "
                                 "microbatches are expected")
        return fill(_raw.rrfp_batch(), microbatches=len(batch), inputs=_native.tensors(arrays),
                    loss_factors=factors, **fields)

    def _run(self, call: Callable[..., Any], batch: Any) -> TrainReport:
        try:
            raw = self._interruptible(call, batch)
        except errors.Cancelled:
            if not self._cancelled:
                raise
            self._cancelled = False  # meant for a step that had ended already
            raw = self._interruptible(call, batch)
        return _train_report(raw)

    def _interruptible(self, call: Callable[..., Any], batch: Any) -> Any:
        """Runs a call so that the main thread notices Ctrl-C meanwhile."""
        if not on_main_thread():
            return call(self._handle, batch)
        if self._worker is None:
            self._worker = Worker("rrfp trainer")
        outcome = None
        try:
            outcome = self._worker.submit(lambda: call(self._handle, batch))
            outcome.wait()
        except BaseException:
            self._cancelled = True
            quietly(self.cancel)
            self._worker.drain()
            if outcome is not None and isinstance(outcome.take_error(), errors.Cancelled):
                self._cancelled = False
            raise
        return outcome.get()

    def cancel(self) -> None:
        """Ends the running or the next step with :class:`rrfp.Cancelled`. From any thread."""
        _raw.rrfp_trainer_cancel(self._handle)

    def fit(self, data: Data | Samples, steps: int, *, batch: int, microbatches: int,
            position: int | None = None, progress: bool = True,
            on_step: Callable[[TrainReport], object] | None = None) -> list[TrainReport]:
        """Trains on samples of `data` for so many steps, with a progress bar if tqdm is installed.

        Args:
            batch: samples of a step, cut into so many `microbatches`.
            position: of the first sample; by default that after the steps done so far.
            on_step: called with the report of every step; what it raises ends the loop.
        """
        if position is None:
            position = self.info.steps * batch
        reports = []
        bar = _progress(range(steps)) if progress else range(steps)
        for step in bar:
            report = self.step(data.batch(position + step * batch, batch, microbatches))
            reports.append(report)
            if hasattr(bar, "set_postfix"):
                bar.set_postfix(loss=f"{report.loss:.4f}", refresh=False)
            if on_step is not None:
                on_step(report)
        return reports

    # ---- Weights --------------------------------------------------------------------------------

    def _parameter(self, parameter: str | int) -> int:
        if isinstance(parameter, str):
            if parameter not in self._names:
                raise KeyError(f"no parameter is named {parameter!r}")
            return self._names[parameter]
        return parameter

    def parameter_names(self) -> list[str]:
        return list(self._names)

    def read(self, parameter: str | int, slot: Slot | str = Slot.WEIGHT) -> numpy.ndarray:
        """A copy of one of the arrays that belong to a parameter: "weight", "gradient" (of the last
        step with keep_gradients), "moment1", "moment2"."""
        number = self._parameter(parameter)
        shape = self._shapes[number] if 0 <= number < len(self._shapes) else (1,)
        array = numpy.empty(shape, dtype=numpy.float32)
        _raw.rrfp_trainer_read(self._handle, number, parse(Slot, slot), array)
        return array

    def write(self, parameter: str | int, array: Any, slot: Slot | str = Slot.WEIGHT) -> None:
        """Copies an array into the trainer; the shape must be that of the parameter."""
        number = self._parameter(parameter)
        values = numpy.ascontiguousarray(array, dtype=numpy.float32)
        if 0 <= number < len(self._shapes) and values.shape != self._shapes[number]:
            raise ValueError(f"an array of shape {values.shape} was given for a parameter of shape "
                             f"{self._shapes[number]}")
        _raw.rrfp_trainer_write(self._handle, number, parse(Slot, slot), values)

    def weights_sha256(self) -> str:
        """Over all weights in the order of the parameters."""
        return text_of(_raw.rrfp_trainer_weights_sha256, self._handle)

    # ---- Looking --------------------------------------------------------------------------------

    @property
    def info(self) -> TrainerInfo:
        return report_of(TrainerInfo, _raw.rrfp_trainer_get_info(self._handle))

    def rank_report(self, rank: int) -> StepReport:
        """What a rank did in the last round of the last step or evaluation."""
        return report_of(StepReport, _raw.rrfp_trainer_rank_report(self._handle, rank))

    def stage_report(self, stage: int) -> StageReport:
        """What a stage is, and what it did in the last step or evaluation."""
        return report_of(StageReport, _raw.rrfp_trainer_stage_report(self._handle, stage))

    def stage_reports(self) -> list[StageReport]:
        """Those of all stages."""
        return [self.stage_report(stage) for stage in range(self.info.stages)]

    def losses(self) -> list[float]:
        """The losses of the last step or evaluation, that of :meth:`Model.set_loss` first; reduced,
        without their factors; NaN for one that counted nothing."""
        losses = numpy.zeros(self._losses, dtype=numpy.float64)
        _raw.rrfp_trainer_losses(self._handle, losses)
        return losses.tolist()

    def first_blocks(self) -> list[int]:
        """The first block of each stage."""
        blocks = numpy.zeros(self.info.stages, dtype=numpy.int32)
        _raw.rrfp_trainer_first_blocks(self._handle, blocks)
        return blocks.tolist()

    def describe_hint(self) -> str:
        """The hint that steps run with; for "auto" also why."""
        return text_of(_raw.rrfp_trainer_describe_hint, self._handle)

    def write_trace(self, path: str | PathLike) -> None:
        """Writes the timeline of the last training steps (`trace_steps`) as a trace event file."""
        _raw.rrfp_trainer_write_trace(self._handle, fspath(path))

    def trace(self) -> Trace:
        """The timeline of the last training steps, which a notebook shows as a picture."""
        return Trace.written_by(self.write_trace)

    # ---- Checkpoints ----------------------------------------------------------------------------

    def save(self, root: str | PathLike, *, position: int = 0, keep: int = 0,
             user: dict[str, Any] | None = None) -> None:
        """Writes root/step-<step>, completely or not at all.

        Args:
            position: samples used so far, which :meth:`load` gives back.
            keep: newest checkpoints that stay; 0 = all.
            user: kept with it, as JSON.
        """
        _raw.rrfp_trainer_save(self._handle, fill(
            _raw.rrfp_save_options(), keep=keep, root=fspath(root), position=position,
            user_json=None if user is None else json.dumps(user)))

    def load(self, path: str | PathLike, *, weights_only: bool = False) -> int:
        """Continues from a checkpoint, or from the newest one in a folder of them, with any stages,
        placement and hint. Returns the samples used. On an error the trainer is unchanged."""
        flags = _raw.RRFP_LOAD_WEIGHTS_ONLY if weights_only else 0
        return _raw.rrfp_trainer_load(self._handle, fspath(path), flags)

    def generator(self, context: int) -> "Generator":
        """A :class:`Generator` with the weights of this trainer."""
        return Generator(self, context)

    def close(self) -> None:
        """Frees it, once its generators are closed; ends a step that another thread is in."""
        self._handle.close()

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


class Generator:
    """Continues a sequence with a trainer's weights, keeping keys and values of what it has seen.
    For models with one int32 input [B, T] on the way to their output [B, T, vocabulary], and for
    those that read the inputs of :meth:`Model.vision_language` as that model does.

    It is of the same thread as the trainer, whose steps change what it computes: start again after
    them.

    Args:
        context: the longest sequence that is attended to; beyond it the older half is forgotten.
    """

    def __init__(self, trainer: Trainer, context: int):
        self._handle = _raw.rrfp_generator_create(trainer._handle, context)
        self._handle.use(trainer._handle)

    def start(self, tokens: Sequence[int]) -> None:
        """Forgets everything and reads a prompt of 1 or more tokens (bytes are numbers too)."""
        _raw.rrfp_generator_start(self._handle, numpy.fromiter(tokens, dtype=numpy.int32))

    def start_inputs(self, inputs: Sequence[Any]) -> None:
        """Forgets everything and reads the inputs of one sequence, pictures too (a vision-language
        model): one microbatch as :meth:`Samples.read` gives it, B = 1, T at most the context.
        Targets are not looked at and may be empty, [1, 0]. :meth:`next` then goes on with text, in
        the last segment; there a picture cannot be forgotten, so it raises
        :class:`rrfp.StateError` once the context is full. After an error the generator is as it
        was."""
        if len(inputs) != _raw.RRFP_SAMPLES_INPUTS:
            raise ValueError(f"{len(inputs)} inputs were given; {_raw.RRFP_SAMPLES_INPUTS} are "
                             "expected")
        tensors = _native.tensors([as_input(array, code)
                                   for array, code in zip(inputs, INPUT_TYPES)])
        _raw.rrfp_generator_start_inputs(self._handle, tensors)

    def next(self, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0,
             seed: int = 0) -> int:
        """Draws the next token and reads it. A draw is a function of the seed and of how many came
        before it since :meth:`start`; the temperature 0 means always the most likely token."""
        return _raw.rrfp_generator_next(self._handle, _sampling(temperature, top_k, top_p, seed))

    def generate(self, count: int, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0,
                 seed: int = 0) -> Iterator[int]:
        """Draws so many tokens, one after another."""
        sampling = _sampling(temperature, top_k, top_p, seed)
        for _ in range(count):
            yield _raw.rrfp_generator_next(self._handle, sampling)

    def logits(self, vocabulary: int) -> numpy.ndarray:
        """The logits for the next token, float32 [vocabulary]."""
        logits = numpy.empty(vocabulary, dtype=numpy.float32)
        _raw.rrfp_generator_logits(self._handle, logits)
        return logits

    def close(self) -> None:
        self._handle.close()

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


def describe_checkpoint(path: str | PathLike) -> dict[str, Any]:
    """What a checkpoint says of itself, or the newest one in a folder of them: "step", "position",
    "seed", "optimizer", "model", "user" and others."""
    return json.loads(text_of(_raw.rrfp_checkpoint_describe, fspath(path)))


def _of_stages(name: str, numbers: Sequence[int] | None, stages: int) -> numpy.ndarray | None:
    if numbers is None:
        return None
    array = integers(numbers, numpy.int32)
    if array.shape != (stages,):
        raise ValueError(f"{name} has {array.size} entries; {stages} are expected")
    return array


def _sampling(temperature: float, top_k: int, top_p: float, seed: int) -> Any:
    return fill(_raw.rrfp_sampling(), temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)


def _train_report(raw: Any) -> TrainReport:
    raw.skipped = bool(raw.flags & _raw.RRFP_TRAIN_SKIPPED)
    return report_of(TrainReport, raw)


def _progress(steps: range) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return steps
    return tqdm(steps, unit="step")
