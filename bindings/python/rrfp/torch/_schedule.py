# SPDX-License-Identifier: Apache-2.0
"""The schedule: what a program uses in place of a schedule of torch.distributed.pipelining."""

from __future__ import annotations

import inspect
import threading
import warnings
from typing import Any, Callable, Sequence

import torch

from .. import Busy, Hint, Kind, Placement, StepReport, Task, _raw
from . import _chunks
from ._accumulate import GradientSums
from ._backward import Gradients
from ._engine import Engine, Traits
from ._random import Stream, generator_state, microbatch_seed
from ._stage import Message, Stage, Step


class Schedule:
    """Trains a chain of modules, the stages, by readiness, on threads of this process.

    The arguments that ``ScheduleGPipe``, ``ScheduleInterleaved1F1B`` and their like have, mean what
    they mean there; so do ``step`` and ``eval``. The others, by name only:

    Args:
        stages: the modules. What one returns (a tensor, or a tuple or list of tensors and anything
            else) are the positional arguments of the next. Parameters may be shared by stages.
        n_microbatches: into how many parts ``step`` cuts its inputs.
        loss_fn: ``loss_fn(output, target, **loss_kwargs)`` gives the loss of a microbatch. Without
            it there are no backwards.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec: see ``TensorChunkSpec``.
        scale_grads: gradients are those of the mean of the losses of the microbatches (true) or of
            their sum. Only what a step adds is scaled, not what ``.grad`` holds from before it.
        hint: the name of a schedule or policy, or an ``rrfp.Hint``. Results do not depend on it.
        ranks: the number of threads. Default: as the hint's schedule wants, else one for each
            stage.
        placement: ``"linear"``, ``"loop"``, ``"v"``, or the rank of each stage.
        order: ``"ready"``, or ``"strict"`` to obey the hint.
        split_backward: whether stages may compute I and W apart, where the hint wants that; one for
            all, or one for each stage. Off, B runs in place of I. See ``rrfp.torch._backward`` for
            the cost.
        deterministic: the same bits for every hint, placement and timing, and for every number of
            stages (with a parameter that several stages use, if each uses it once).
        seed: of the random numbers of the stages, keyed by step and microbatch (see
            ``rrfp.torch._random``); null leaves them to the process's generator and to luck.
        threads_per_rank: torch's threads inside an operation, while a step runs; null leaves the
            number as it is. The number of OpenBLAS, which Debian's torch uses, is its own:
            set ``OPENBLAS_NUM_THREADS=1`` in the environment.
        pipeline_options: what ``rrfp.Pipeline`` takes besides, such as ``cap_slots`` or
            ``trace_steps``.

    Tensors pass from stage to stage without a copy, so a stage must not change its inputs in place.
    Modules with running statistics (BatchNorm) see the microbatches one by one, as they do in
    torch's schedules, in the order in which forwards run: with a hint that reorders the forwards of
    a stage the statistics may differ in the last bits. Autocast of the calling thread holds in the
    stages. Hooks of parameters do not run on a stage's gradients. Checkpointing must be
    ``use_reentrant=False`` and repeat nothing that draws random numbers; it repeats the forward in
    I and, for each group of parameters, in W, so such stages want ``split_backward=False``.

    Threads: one call at a time; a second is refused with ``rrfp.Busy``. The threads of the ranks
    wait between steps, until ``close``.
    """

    def __init__(
        self,
        stages: Sequence[torch.nn.Module],
        n_microbatches: int,
        loss_fn: Callable[..., torch.Tensor] | None = None,
        args_chunk_spec: Sequence[Any] | None = None,
        kwargs_chunk_spec: dict[str, Any] | None = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        *,
        hint: str | Hint = "1f1b",
        ranks: int | None = None,
        placement: str | Placement | Sequence[int] | None = None,
        order: str = "ready",
        split_backward: bool | Sequence[bool] = True,
        deterministic: bool = True,
        seed: int | None = 0,
        threads_per_rank: int | None = 1,
        **pipeline_options: Any,
    ) -> None:
        modules = list(stages)
        if not modules or not all(isinstance(m, torch.nn.Module) for m in modules):
            raise TypeError("stages must be a list of at least one torch.nn.Module")
        if n_microbatches < 1:
            raise ValueError(f"n_microbatches is {n_microbatches}, at least 1 is wanted")
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self._args_spec, self._kwargs_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_spec = output_merge_spec
        self._scale_grads = scale_grads
        self._deterministic = deterministic
        self._seed = seed
        self._split = _one_each(split_backward, len(modules))
        self._stages = [
            Stage(s, module, s == len(modules) - 1, loss_fn) for s, module in enumerate(modules)
        ]
        self._takes = [_keywords(module) for module in modules]
        options = {"order": order, "nondeterministic": not deterministic, **pipeline_options}
        self._engine = Engine(len(modules), hint, ranks, placement, threads_per_rank, options)
        self._busy = threading.Lock()
        # Messages on their way, by (edge, microbatch); edge s joins stage s and s + 1.
        self._activations: dict[tuple[int, int], Message] = {}
        self._gradients: dict[tuple[int, int], Gradients] = {}
        #: The number of the next step, in the keys of random numbers; set it when a run is resumed.
        self.step_index = 0
        #: How each rank spent the last step.
        self.reports: list[StepReport] = []

    def write_trace(self, path: str) -> None:
        """Writes the timeline of the last steps; needs ``trace_steps=N`` among the options."""
        self._engine.write_trace(path)

    def close(self) -> None:
        """Ends the threads of the ranks and frees the engine's memory; a later step makes them
        anew."""
        self._engine.close()

    def __enter__(self) -> Schedule:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[torch.Tensor] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        arg_mbs: list[tuple[Any, ...]] | None = None,
        kwarg_mbs: list[dict[str, Any]] | None = None,
        target_mbs: list[Any] | None = None,
        finalize_gradients: bool = True,
        loss_weights: Sequence[float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs forwards and backwards of one batch; adds gradients to ``.grad`` of the parameters.

        Args:
            args: inputs of the first stage, cut into microbatches along dimension 0.
            target: cut in the same way, for ``loss_fn``.
            losses: is filled with the loss of each microbatch, without scaling and detached.
            return_outputs: without, outputs are freed as soon as the loss is there.
            arg_mbs, kwarg_mbs, target_mbs: instead, what is already cut; any number of
                microbatches, of any sizes.
            finalize_gradients: taken for compatibility; nothing here is sharded.
            loss_weights: factor of the gradient of each microbatch's loss, in place of
                ``scale_grads``. With ``[len(x) / total for x in ...]`` microbatches of different
                sizes give the mean over samples.
            kwargs: cut like ``args``; each goes to all stages whose ``forward`` has that name.

        Returns:
            The output of the last stage for the whole batch, detached, or None without
            ``return_outputs``.

        Raises:
            rrfp.StageFailed: a module or the loss failed. The text is that of the exception, which
            is also
                ``__cause__``. ``.grad`` may then hold a part of the step: clear it before trying
                again.
            RuntimeError: under ``torch.no_grad()``, or nothing requires a gradient.

        Gradients also flow into inputs that require them. Ctrl-C ends the step when running tasks
        end.
        """
        del finalize_gradients
        train = self._loss_fn is not None
        if train and not torch.is_grad_enabled():
            raise RuntimeError("step() computes gradients; under torch.no_grad() call eval()")
        cut = self._cut(args, kwargs, target, arg_mbs, kwarg_mbs, target_mbs)
        if train and cut[2] is None:
            raise ValueError("a schedule with a loss function needs target or target_mbs")
        output = self._run(train, cut, losses, return_outputs, loss_kwargs, loss_weights)
        self.step_index += 1
        return output

    def eval(
        self,
        *args: Any,
        target: Any = None,
        losses: list[torch.Tensor] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        arg_mbs: list[tuple[Any, ...]] | None = None,
        kwarg_mbs: list[dict[str, Any]] | None = None,
        target_mbs: list[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Forwards only, under ``torch.no_grad()``; arguments as for ``step``. Losses are computed
        if there is a loss function and a target. Whether modules drop out is up to
        ``module.eval()``."""
        cut = self._cut(args, kwargs, target, arg_mbs, kwarg_mbs, target_mbs)
        return self._run(False, cut, losses, return_outputs, loss_kwargs, None)

    # ---- Before and after a step, on the caller's thread ----

    def _cut(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        target: Any,
        arg_mbs: list[Any] | None,
        kwarg_mbs: list[Any] | None,
        target_mbs: list[Any] | None,
    ) -> tuple[list[Any], list[Any], list[Any] | None]:
        """Positional arguments, keyword arguments, targets of each microbatch."""
        given = [mbs for mbs in (arg_mbs, kwarg_mbs, target_mbs) if mbs is not None]
        if not given:
            cut_args, cut_kwargs = _chunks.split(
                args, kwargs, self._n_microbatches, self._args_spec, self._kwargs_spec
            )
            targets = None if target is None else _chunks.split_target(target, len(cut_args))
            return cut_args, cut_kwargs, targets
        if args or kwargs or target is not None:
            raise ValueError("give a whole batch, or arg_mbs, kwarg_mbs and target_mbs, not both")
        count = len(given[0])
        if not count or any(not isinstance(m, list) or len(m) != count for m in given):
            raise ValueError(
                "arg_mbs, kwarg_mbs, target_mbs must be lists with one entry a microbatch"
            )
        cut_args = arg_mbs if arg_mbs is not None else [()] * count
        cut_kwargs = kwarg_mbs if kwarg_mbs is not None else [{}] * count
        if not all(isinstance(a, tuple) for a in cut_args):
            raise TypeError("arg_mbs must be a list of tuples")
        if not all(isinstance(k, dict) for k in cut_kwargs):
            raise TypeError("kwarg_mbs must be a list of dicts")
        return cut_args, cut_kwargs, target_mbs

    def _run(
        self,
        train: bool,
        cut: tuple[list[Any], list[Any], list[Any] | None],
        losses: list[torch.Tensor] | None,
        return_outputs: bool,
        loss_kwargs: dict[str, Any] | None,
        loss_weights: Sequence[float] | None,
    ) -> Any:
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list, not {type(losses).__name__}")
        if not self._busy.acquire(blocking=False):
            raise Busy("another thread is inside a step of this schedule", _raw.RRFP_ERR_BUSY)
        try:
            step = self._prepare(train, cut, return_outputs, loss_kwargs, loss_weights)
            before = None if self._seed is None else generator_state()
            self._run_tasks(step, [stage.trainable() for stage in self._stages])
            if before is not None and not torch.equal(before, generator_state()):
                warnings.warn(_UNSEEN_DRAW, stacklevel=3)
        finally:
            self._busy.release()
        if losses is not None:
            losses[:] = [loss for loss in step.losses if loss is not None]
        _backward_outside(step)
        return _chunks.merge(step.outputs, self._output_spec) if return_outputs else None

    def _prepare(
        self,
        train: bool,
        cut: tuple[list[Any], list[Any], list[Any] | None],
        return_outputs: bool,
        loss_kwargs: dict[str, Any] | None,
        loss_weights: Sequence[float] | None,
    ) -> Step:
        args, kwargs, targets = cut
        count = len(args)
        weights = [1.0 / count if self._scale_grads else 1.0] * count
        if loss_weights is not None:
            weights = [float(weight) for weight in loss_weights]
            if len(weights) != count:
                raise ValueError(f"{len(weights)} loss_weights for {count} microbatches")
        streams: list[Stream | None] = [None] * count
        if self._seed is not None:
            seeds = (microbatch_seed(self._seed, self.step_index, i) for i in range(count))
            streams = [Stream(seed) for seed in seeds]
        return Step(
            args=args,
            kwargs=self._distribute(kwargs),
            targets=targets,
            loss_kwargs=loss_kwargs or {},
            weights=weights,
            train=train,
            keep_outputs=return_outputs,
            streams=streams,
        )

    def _distribute(self, kwargs: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """The keyword arguments of each stage and microbatch."""
        for name in {name for of_microbatch in kwargs for name in of_microbatch}:
            if not any(takes is None or name in takes for takes in self._takes):
                raise TypeError(f"no stage takes the keyword argument {name!r}")
        return [
            [{k: v for k, v in mb.items() if takes is None or k in takes} for mb in kwargs]
            for takes in self._takes
        ]

    # ---- During a step ----

    def _run_tasks(self, step: Step, parameters: list[list[torch.Tensor]]) -> None:
        traits = self._traits(step, parameters)
        if step.train:
            step.sums = GradientSums(parameters, self._deterministic)
        for stage, of_stage, trait in zip(self._stages, parameters, traits):
            stage.begin(of_stage, step.train and trait.requires)
        try:
            self.reports = self._engine.run(
                lambda task: self._run_task(step, traits, task),
                traits,
                microbatches=len(step.args),
                step=self.step_index,
                train=step.train,
            )
        finally:
            for stage in self._stages:
                stage.end()
            self._activations.clear()
            self._gradients.clear()

    def _traits(self, step: Step, parameters: list[list[torch.Tensor]]) -> list[Traits]:
        """What the engine must know of each stage in this step."""
        traits = []
        requires = False
        for s, of_stage in enumerate(parameters):
            outside = step.train and any(
                _requires_gradient(step.args[i] if s == 0 else (), step.kwargs[s][i])
                for i in range(len(step.args))
            )
            requires = requires or bool(of_stage) or outside
            traits.append(Traits(bool(of_stage), outside, self._split[s], requires))
        if step.train and not requires:
            raise RuntimeError("no parameter and no input requires a gradient")
        return traits

    def _run_task(self, step: Step, traits: list[Traits], task: Task) -> None:
        """One task, on the thread of its rank."""
        s, i, stage = task.stage, task.microbatch, self._stages[task.stage]
        if task.kind == Kind.FORWARD:
            message = stage.forward(step, i, self._activations.pop((s - 1, i), None))
            if message is not None:
                self._activations[s, i] = message
                task.put(s, ())
        elif task.kind == Kind.WEIGHT_GRADIENT:
            stage.weight_gradient(step, i)
        else:
            arrived = self._gradients.pop((s, i), None)
            run = stage.backward if task.kind == Kind.BACKWARD else stage.input_gradient
            gradients = run(step, i, arrived)
            if s > 0 and traits[s - 1].requires:
                self._gradients[s - 1, i] = gradients
                task.put(s - 1, ())


_UNSEEN_DRAW = (
    "random numbers were drawn from the process's generator during the step: by another thread, "
    "or by a stage in a way that Python does not see (scripted or compiled modules). In the "
    "latter case they depend on the order of events; seed=None says that this is wanted"
)


def _one_each(value: bool | Sequence[bool], count: int) -> list[bool]:
    values = [value] * count if isinstance(value, bool) else list(value)
    if len(values) != count:
        raise ValueError(f"split_backward has {len(values)} entries for {count} stages")
    return values


def _keywords(module: torch.nn.Module) -> set[str] | None:
    """Names that may be given to ``forward`` by keyword; None if any may."""
    parameters = inspect.signature(module.forward).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _requires_gradient(*trees: Any) -> bool:
    leaves = torch.utils._pytree.tree_flatten(trees)[0]
    return any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves)


def _backward_outside(step: Step) -> None:
    """Passes gradients on to the caller's tensors, in the order of microbatches and stages."""
    pairs = [pair for key in sorted(step.outside) for pair in step.outside[key]]
    if pairs:
        torch.autograd.backward([t for t, _ in pairs], [g for _, g in pairs])
