#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The steps of torch.distributed.pipelining on given task durations, for comparison.

    torch_pipelining.py --realization FILE --schedule NAME|all [--steps 3]
    torch_pipelining.py --self-test

One process per rank on this machine, gloo between them, and stages that sleep for the given time
instead of computing: what is measured is the schedule and the framework's own cost per task and
message. Prints one JSON object per schedule and line; milliseconds are of the wall clock, durations
in FILE are multiplied by its time_scale:

    makespan_ms   per step: from the common start to the return of the last rank's step()
    tasks_ms      the same, but to the end of the last task
    ideal_ms      torch's own order replayed on the given durations, all else free
    busy_ms       the work of the busiest rank, as given
    oversleep_ms  by how much the sleeps were too long

A schedule that this torch or FILE cannot give yields {"schedule": ..., "skipped": why}. Exit
status: 0, 1 for an error, 77 if nothing could run. FILE is

    {"ranks": P, "microbatches": M, "time_scale": x, "message_bytes": 1024, "layouts": {
      "linear": {"chunks": 1, "placement": "linear", "forward_ms": [[by microbatch] by stage],
                 "input_gradient_ms": ..., "weight_gradient_ms": ...},
      "loop": {"chunks": 2, ...}, "v": {"chunks": 2, ...}}}

Every step is checked: each task slept once, in the order that torch planned, and none began before
what it needs had ended. Written for torch 2.15; Debian 12's 1.13 has no pipelining. torch itself
takes a rank about 1 ms of processor time per task: choose time_scale so that tasks are well above
ranks / cores milliseconds, or the processors and not the schedule are measured.
"""
import argparse
import datetime
import gc
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

# Both are read when torch and gloo start: sleeping ranks need no thread pool, and the host name of
# a machine need not resolve to an address that it can connect to.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

SKIPPED = 77
WARM_UP_STEPS = 1
START_DELAY_NS = 500_000_000  # longer than any rank takes to learn the common start, builds or not
# name: (class in torch.distributed.pipelining, layout in FILE)
SCHEDULES = {
    "1F1B": ("Schedule1F1B", "linear"),
    "Interleaved1F1B": ("ScheduleInterleaved1F1B", "loop"),
    "InterleavedZeroBubble": ("ScheduleInterleavedZeroBubble", "loop"),
    "ZBVZeroBubble": ("ScheduleZBVZeroBubble", "v"),
}
DURATIONS = {"F": "forward_ms", "I": "input_gradient_ms", "W": "weight_gradient_ms"}
ACTION = re.compile(r"(\d+)([FIWB])(\d+)")

try:
    import torch
    from torch import distributed, multiprocessing, nn
    MISSING = None
except (ImportError, OSError) as error:  # OSError: a library that torch links to is absent
    MISSING = f"torch cannot be imported: {error}"
if MISSING is None:
    try:
        from torch.distributed import pipelining
    except ImportError as error:
        MISSING = f"torch {torch.__version__} has no torch.distributed.pipelining: {error}"


class BadInput(Exception):
    """What the user gave cannot be run; the text says why."""


# ---- realisations ------------------------------------------------------------------------------

def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def positive_integer(realization, name):
    value = realization.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadInput(f"{name} is {value!r}; expected a positive integer")
    return value


def check_layout(name, layout, ranks, microbatches):
    chunks = {"linear": 1, "loop": layout.get("chunks"), "v": 2}[name]
    placement = layout.get("placement", name)
    if placement != name:
        raise BadInput(f"layouts.{name}.placement is {placement!r}; expected {name!r}")
    if layout.get("chunks") != chunks or not isinstance(chunks, int) or chunks < 1:
        raise BadInput(f"layouts.{name}.chunks is {layout.get('chunks')!r}; expected "
                       f"{'a positive integer' if name == 'loop' else chunks}")
    stages = ranks * chunks
    for field in DURATIONS.values():
        where = f"layouts.{name}.{field}"
        rows = layout.get(field)
        if not isinstance(rows, list) or len(rows) != stages:
            found = f"{len(rows)} rows" if isinstance(rows, list) else repr(rows)
            raise BadInput(f"{where} is {found}; expected {stages} rows, one per stage")
        for stage, row in enumerate(rows):
            if not isinstance(row, list) or len(row) != microbatches:
                found = f"{len(row)} values" if isinstance(row, list) else repr(row)
                raise BadInput(f"{where}[{stage}] is {found}; expected {microbatches} values, "
                               "one per microbatch")
            for microbatch, value in enumerate(row):
                if not is_number(value) or not 0 <= value < 1e9:
                    raise BadInput(f"{where}[{stage}][{microbatch}] is {value!r}; expected "
                                   "milliseconds in [0, 1e9)")


def check_realization(realization):
    if not isinstance(realization, dict):
        raise BadInput(f"the realisation is a {type(realization).__name__}; expected an object")
    ranks = positive_integer(realization, "ranks")
    microbatches = positive_integer(realization, "microbatches")
    scale = realization.setdefault("time_scale", 1)
    if not is_number(scale) or not 0 < scale < 1e6:
        raise BadInput(f"time_scale is {scale!r}; expected a number above 0")
    realization.setdefault("message_bytes", 1024)
    if positive_integer(realization, "message_bytes") < 4:
        raise BadInput(f"message_bytes is {realization['message_bytes']}; expected 4 or more")
    layouts = realization.get("layouts")
    if not isinstance(layouts, dict) or not layouts:
        raise BadInput(f"layouts is {layouts!r}; expected an object of linear, loop or v")
    for name, layout in layouts.items():
        if name not in ("linear", "loop", "v"):
            raise BadInput(f"layouts has {name!r}; expected linear, loop or v")
        if not isinstance(layout, dict):
            raise BadInput(f"layouts.{name} is {layout!r}; expected an object")
        check_layout(name, layout, ranks, microbatches)
    return realization


def read_realization(path):
    try:
        return check_realization(json.loads(pathlib.Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{path} is not JSON: {error}") from error
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def durations_ns(realization, layout):
    """By kind, stage and microbatch, as it is to be slept."""
    scale = realization["time_scale"] * 1e6
    return {kind: [[round(value * scale) for value in row] for row in layout[field]]
            for kind, field in DURATIONS.items()}


def stages_of(layout_name, chunks, ranks, rank):
    if layout_name == "v":
        return [rank, 2 * ranks - 1 - rank]
    return [chunk * ranks + rank for chunk in range(chunks)]


def why_not(realization, name):
    """Why a schedule cannot run here, or None."""
    class_name, layout = SCHEDULES[name]
    ranks, microbatches = realization["ranks"], realization["microbatches"]
    rounds = max(1, microbatches // ranks)
    if not hasattr(pipelining, class_name) and not hasattr(pipelining.schedules, class_name):
        return f"torch {torch.__version__} has no {class_name}"
    if layout not in realization["layouts"]:
        return f"the realisation has no layout {layout!r}"
    if ranks < 2:
        return "one rank has no pipeline"
    if name == "1F1B" and microbatches < ranks:
        return f"torch wants at least {ranks} microbatches for {ranks} ranks, not {microbatches}"
    if name.startswith("Interleaved"):
        if realization["layouts"][layout]["chunks"] < 2:
            return "torch wants at least 2 chunks per rank"
        if microbatches % rounds != 0:
            return f"torch wants microbatches ({microbatches}) in {rounds} equal rounds"
    return None


# ---- one rank ----------------------------------------------------------------------------------

class Sleeper:
    """Sleeps for the tasks of one stage and writes down when."""

    def __init__(self, stage, durations, records):
        self.stage, self.durations, self.records = stage, durations, records

    def __call__(self, kind, microbatch):
        planned = self.durations[kind][self.stage][microbatch]
        start = time.monotonic_ns()
        time.sleep(planned / 1e9)
        self.records.append((kind, self.stage, microbatch, start, time.monotonic_ns()))


def define_modules():
    """The stage module; in a function because its bases exist only where torch does."""

    def dense(gradient):
        # That of a loss's sum is one number seen many times: gloo does not send such a tensor and
        # torch does not add to it.
        return gradient.clone(memory_format=torch.contiguous_format)

    class SleepInputGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, anchor, sleeper, microbatch):
            ctx.sleeper, ctx.microbatch, ctx.anchored = sleeper, microbatch, anchor is not None
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            ctx.sleeper("I", ctx.microbatch)
            gradient = dense(gradient)
            return gradient, gradient if ctx.anchored else None, None, None

    class SleepWeightGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight, sleeper, microbatch):
            ctx.sleeper, ctx.microbatch = sleeper, microbatch
            return weight.clone()

        @staticmethod
        def backward(ctx, gradient):
            ctx.sleeper("W", ctx.microbatch)
            return dense(gradient), None, None

    class SleepingStage(nn.Module):
        """x + weight, with one autograd node for each half of the backward.

        torch's split runs the nodes between output and input for I, and for W those between the
        weight and the first node that both share. That is the sum, which sleeps in neither; a node
        that computed both gradients would run, and sleep, twice. The weight is 0, so that the
        microbatch's number, which the tensor holds, reaches the next stage.
        """

        def __init__(self, sleeper, width, first):
            super().__init__()
            self.sleeper = sleeper
            self.weight = nn.Parameter(torch.zeros(1, width))
            # What enters stage 0 needs no gradient, so torch's backward of it would pass by the
            # node for I. A parameter there keeps it, as an embedding does in a model. torch leaves
            # out I of stage 0 in a split and runs both halves at W; see expanded().
            self.anchor = nn.Parameter(torch.zeros(1, width)) if first else None

        def forward(self, x):
            microbatch = int(x[0, 0])
            self.sleeper("F", microbatch)
            # autograd runs the node made last first: I before W where both are one backward
            weight = SleepWeightGradient.apply(self.weight, self.sleeper, microbatch)
            return SleepInputGradient.apply(x, self.anchor, self.sleeper, microbatch) + weight

    return SleepingStage


def order_1f1b(rank, ranks, microbatches):
    """What Schedule1F1B does; unlike the others it offers no list of its actions."""
    warm_up = min(microbatches, ranks - 1 - rank)
    order = [f"{rank}F{i}" for i in range(warm_up)]
    for i in range(microbatches - warm_up):
        order += [f"{rank}F{warm_up + i}", f"{rank}B{i}"]
    return order + [f"{rank}B{i}" for i in range(microbatches - warm_up, microbatches)]


def build(name, realization, rank, records):
    """The schedule and the order in which it is to run this rank's tasks."""
    class_name, layout_name = SCHEDULES[name]
    layout = realization["layouts"][layout_name]
    ranks, microbatches = realization["ranks"], realization["microbatches"]
    durations = durations_ns(realization, layout)
    width = realization["message_bytes"] // 4
    module = define_modules()
    stages = []
    for stage in stages_of(layout_name, layout["chunks"], ranks, rank):
        sleeper = Sleeper(stage, durations, records)
        # Example tensors, so that torch need not run the module to learn shapes.
        stages.append(pipelining.PipelineStage(
            module(sleeper, width, stage == 0), stage, ranks * layout["chunks"],
            torch.device("cpu"),
            input_args=(torch.zeros(1, width, requires_grad=stage > 0),),
            output_args=(torch.zeros(1, width, requires_grad=True),)))
    owner = pipelining if hasattr(pipelining, class_name) else pipelining.schedules
    schedule = getattr(owner, class_name)(
        stages[0] if name == "1F1B" else stages, n_microbatches=microbatches,
        loss_fn=lambda output, _: output.sum(), scale_grads=False)
    if name == "1F1B":
        return schedule, stages, order_1f1b(rank, ranks, microbatches)
    return schedule, stages, [str(a) for a in schedule.pipeline_order[rank] if a is not None]


def agree_on_start():
    """An instant a little ahead, the same for all ranks: a barrier's ends differ by more."""
    distributed.barrier()
    start = torch.tensor([time.monotonic_ns() + START_DELAY_NS])
    distributed.broadcast(start, src=0)
    late = time.monotonic_ns() - int(start)
    if late > 0:
        raise RuntimeError(f"learnt of the common start {late / 1e6:.1f} ms after it")
    time.sleep(-late / 1e9)
    return int(start)


def run_rank(rank, name, realization, steps, timeout_s, folder):
    """The body of a process: all steps of one schedule; leaves rank<rank>.json in folder."""
    torch.set_num_threads(1)
    ranks, microbatches = realization["ranks"], realization["microbatches"]
    distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank,
                                   world_size=ranks,
                                   timeout=datetime.timedelta(seconds=timeout_s))
    records, results = [], []
    schedule, stages, order = build(name, realization, rank, records)
    width = realization["message_bytes"] // 4
    numbers = torch.arange(microbatches, dtype=torch.float32).view(-1, 1).repeat(1, width)
    arguments = (numbers,) if any(stage.is_first for stage in stages) else ()
    targets = {"target": numbers} if any(stage.is_last for stage in stages) else {}
    for step in range(WARM_UP_STEPS + steps):
        records.clear()
        for stage in stages:
            stage.submod.zero_grad(set_to_none=True)
        gc.collect()
        gc.disable()
        start = agree_on_start()
        schedule.step(*arguments, **targets)
        end = time.monotonic_ns()
        gc.enable()
        if step >= WARM_UP_STEPS:
            results.append({"start": start, "end": end, "records": records.copy()})
    # Before that, another rank may still need this one's end of a connection.
    distributed.barrier()
    distributed.destroy_process_group()
    pathlib.Path(folder, f"rank{rank}.json").write_text(
        json.dumps({"order": order, "steps": results}), encoding="utf-8")


# ---- all ranks ---------------------------------------------------------------------------------

def expanded(order):
    """(kind, stage, microbatch) of torch's action texts, B as I and W."""
    tasks = []
    for text in order:
        match = ACTION.fullmatch(text)
        if match is None:
            raise RuntimeError(f"torch plans {text!r}; expected a stage, one of FIWB, a microbatch")
        stage, kind, microbatch = int(match[1]), match[2], int(match[3])
        tasks += [(k, stage, microbatch) for k in ("IW" if kind == "B" else kind)]
    return tasks


def needs(task, fused, stages):
    """What must have ended before a task: with a fused backward, the whole of the next stage's."""
    kind, stage, microbatch = task
    if kind == "F":
        return [("F", stage - 1, microbatch)] if stage > 0 else []
    if kind == "W":
        return [("I", stage, microbatch)]
    later = [("W" if fused else "I", stage + 1, microbatch)] if stage + 1 < stages else []
    return [("F", stage, microbatch), *later]


def replay(orders, durations, fused, stages):
    """The makespan in ns of the ranks' orders with free messages."""
    ends, clocks, heads = {}, [0] * len(orders), [0] * len(orders)
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while heads[rank] < len(order):
                task = order[heads[rank]]
                wanted = needs(task, fused, stages)
                if any(other not in ends for other in wanted):
                    break
                kind, stage, microbatch = task
                begin = max([clocks[rank], *(ends[other] for other in wanted)])
                clocks[rank] = ends[task] = begin + durations[kind][stage][microbatch]
                heads[rank] += 1
                moved = True
    if any(head < len(order) for head, order in zip(heads, orders)):
        raise RuntimeError("torch's order stalls when replayed")
    return max(clocks)


def check_step(name, records_by_rank, orders, durations, fused):
    """Raises unless each task slept once, long enough, in order, and after what it needs."""
    stages, microbatches = len(durations["F"]), len(durations["F"][0])
    begins, ends = {}, {}
    for rank, records in enumerate(records_by_rank):
        for kind, stage, microbatch, begin, end in records:
            task = (kind, stage, microbatch)
            if task in ends:
                raise RuntimeError(f"{name}: {task} slept twice")
            begins[task], ends[task] = begin, end
            planned = durations[kind][stage][microbatch]
            if end - begin < planned:
                raise RuntimeError(f"{name}: {task} slept {end - begin} ns, planned {planned}")
        slept = [tuple(record[:3]) for record in records]
        if slept != orders[rank]:
            at = next((i for i, (a, b) in enumerate(zip(slept, orders[rank])) if a != b),
                      min(len(slept), len(orders[rank])))
            raise RuntimeError(f"{name}: rank {rank} slept {slept[at:at + 3]} as task {at}, "
                               f"torch's plan has {orders[rank][at:at + 3]}")
    if len(ends) != 3 * stages * microbatches:
        raise RuntimeError(f"{name}: {len(ends)} tasks slept; expected {3 * stages * microbatches}")
    for task, begin in begins.items():
        for other in needs(task, fused, stages):
            if ends[other] > begin:
                raise RuntimeError(f"{name}: {task} began {ends[other] - begin} ns before the end "
                                   f"of {other}, which it needs")


def summary(name, realization, found):
    ranks = realization["ranks"]
    layout = realization["layouts"][SCHEDULES[name][1]]
    durations = durations_ns(realization, layout)
    fused = not name.endswith("ZeroBubble")
    orders = [expanded(rank["order"]) for rank in found]
    makespans, tasks, oversleeps, sums = [], [], [], []
    for steps in zip(*(rank["steps"] for rank in found)):
        check_step(name, [step["records"] for step in steps], orders, durations, fused)
        start = steps[0]["start"]
        makespans.append(max(step["end"] for step in steps) - start)
        tasks.append(max(step["records"][-1][4] for step in steps) - start)
        for step in steps:
            over = [end - begin - durations[kind][stage][microbatch]
                    for kind, stage, microbatch, begin, end in step["records"]]
            oversleeps += over
            sums.append(sum(over))

    def ms(ns):
        return round(ns / 1e6, 3)

    busy = max(sum(durations[kind][stage][i] for kind, stage, i in order) for order in orders)
    return {
        "schedule": name, "ranks": ranks, "microbatches": realization["microbatches"],
        "chunks": layout["chunks"], "time_scale": realization["time_scale"],
        "message_bytes": realization["message_bytes"],
        "makespan_ms": [ms(t) for t in makespans], "tasks_ms": [ms(t) for t in tasks],
        "ideal_ms": ms(replay(orders, durations, fused, len(durations["F"]))),
        "busy_ms": ms(busy),
        "oversleep_ms": {"median": ms(statistics.median(oversleeps)), "max": ms(max(oversleeps)),
                         "rank_sum_max": ms(max(sums))},
        "torch": torch.__version__,
    }


def run_schedule(name, realization, steps):
    layout = realization["layouts"][SCHEDULES[name][1]]
    total_ns = sum(sum(map(sum, rows)) for rows in durations_ns(realization, layout).values())
    # No order takes longer than all tasks one after another; a rank that waits longer is stuck.
    timeout_s = 60 + 2 * total_ns / 1e9
    with tempfile.TemporaryDirectory(prefix="torch_pipelining") as folder:
        # fork: the ranks share this process's copy of torch, which no thread has used yet
        multiprocessing.start_processes(
            run_rank, (name, realization, steps, timeout_s, folder),
            nprocs=realization["ranks"], start_method="fork")
        found = [json.loads(pathlib.Path(folder, f"rank{rank}.json").read_text(encoding="utf-8"))
                 for rank in range(realization["ranks"])]
    return summary(name, realization, found)


def run_all(names, realization, steps):
    """Runs and prints; the results of what could run."""
    results = {}
    for name in names:
        reason = why_not(realization, name)
        if reason is None:
            results[name] = run_schedule(name, realization, steps)
        print(json.dumps(results.get(name, {"schedule": name, "skipped": reason})), flush=True)
    return results


def equal_realization(ranks, microbatches, task_ms, time_scale):
    """Tasks of task_ms in every layout, so two chunks are a model twice as long."""
    def layout(name, chunks):
        rows = [[task_ms] * microbatches for _ in range(ranks * chunks)]
        return {"chunks": chunks, "placement": name, **dict.fromkeys(DURATIONS.values(), rows)}

    return check_realization({
        "ranks": ranks, "microbatches": microbatches, "time_scale": time_scale,
        "message_bytes": 1024,
        "layouts": {"linear": layout("linear", 1), "loop": layout("loop", 2), "v": layout("v", 2)}})


def self_test(steps):
    """Whether equal tasks take as long as the closed forms say (p ranks, m a multiple of p)."""
    p, m = 4, 8
    # torch's own work takes each rank about 1 ms per task, and equal tasks make all ranks do it at
    # once: on two cores beside a compiler that is more than 15 % of 10 ms.
    task_ms, time_scale = 10, 3
    t = task_ms * time_scale
    expected = {
        "1F1B": (m + p - 1) * 3 * t,
        "Interleaved1F1B": (2 * m + p - 1) * 3 * t,
        "InterleavedZeroBubble": (6 * m + p - 1) * t,
        "ZBVZeroBubble": (6 * m + p - 1) * t,  # no rank idles, but the last starts p - 1 late
    }
    results = run_all(SCHEDULES, equal_realization(p, m, task_ms, time_scale), steps)
    good = bool(results)
    for name, result in results.items():
        if abs(result["ideal_ms"] - expected[name]) > 0.01:
            print(f"{name}: torch's order takes {result['ideal_ms']} ms when replayed; expected "
                  f"{expected[name]}", file=sys.stderr)
            good = False
        fastest = min(result["makespan_ms"])  # what else the machine does only adds
        if not 1 <= fastest / expected[name] <= 1.15:
            print(f"{name}: fastest makespan {fastest} ms; expected {expected[name]} to 15 % above",
                  file=sys.stderr)
            good = False
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--realization", metavar="FILE")
    parser.add_argument("--schedule", choices=[*SCHEDULES, "all"], default="all")
    parser.add_argument("--steps", type=int, default=3, help="timed steps, default 3")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error(f"--steps is {options.steps}; expected 1 or more")
    if options.self_test == (options.realization is not None):
        parser.error("expected either --realization FILE or --self-test")
    if MISSING is not None:
        print(json.dumps({"skipped": MISSING}))
        return SKIPPED
    names = SCHEDULES if options.schedule == "all" else [options.schedule]
    try:
        if options.self_test:
            return 0 if self_test(options.steps) else 1
        realization = read_realization(options.realization)
        return 0 if run_all(names, realization, options.steps) else SKIPPED
    except (BadInput, RuntimeError, multiprocessing.ProcessRaisedException,
            multiprocessing.ProcessExitedException) as error:
        print(f"torch_pipelining.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
