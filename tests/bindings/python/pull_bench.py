# SPDX-License-Identifier: Apache-2.0
"""Prints what a task costs in Python: next and done of empty tasks on one rank, in nanoseconds.

Not a test: it never fails on time.
"""

import statistics
import time

import rrfp

MICROBATCHES = 2000
REPEATS = 9


def steps(run):
    """Nanoseconds per task, median over repeats; one to warm up."""
    times = []
    for _ in range(REPEATS + 1):
        begin = time.perf_counter_ns()
        tasks = run()
        times.append((time.perf_counter_ns() - begin) / tasks)
    return statistics.median(times[1:])


def task_loop(rank):
    with rank.step(MICROBATCHES, "1f1b") as step:
        for task in step:
            task.done()
    return step.report.tasks


def with_loop(rank):
    with rank.step(MICROBATCHES, "1f1b") as step:
        for task in step:
            with task:
                pass
    return step.report.tasks


def run_step(pipeline):
    return pipeline.run(lambda task: None, microbatches=MICROBATCHES)[0].tasks


def main():
    with rrfp.Pipeline(rrfp.Graph.chain(1)) as pipeline:
        with pipeline.rank(0) as rank:
            for name, loop in (("for task in step: task.done()", task_loop),
                               ("for task in step: with task", with_loop)):
                print(f"{name}: {steps(lambda: loop(rank)):.0f} ns per task")
        time_of_run = steps(lambda: run_step(pipeline))
        print(f"pipeline.run(function): {time_of_run:.0f} ns per task")


if __name__ == "__main__":
    main()
