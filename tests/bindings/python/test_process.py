# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, fork, and programs that forget to close things. Each runs in a process of its own."""

import os
import subprocess
import sys
import textwrap
import threading
import time
import unittest

SETUP = """
import os, signal, sys, threading, time
import numpy as np
import rrfp

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored

def interrupt_after(seconds):
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

TEXT = %r
LIMIT = %r
"""


# An idle machine needs less than 2 s; one that runs other things, more. What hangs takes minutes.
SECONDS = 2 if os.getloadavg()[0] < (os.cpu_count() or 1) else 10
TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenarios", "text.txt")


class Processes(unittest.TestCase):
    def run_program(self, program, timeout=20):
        """(what it printed, seconds from the line "ending" or the start to the end)."""
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-W", "ignore", "-u", "-c",
             SETUP % (TEXT, 0.3 + SECONDS / 2) + textwrap.dedent(program)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
        lines, begin = [], time.monotonic()
        limit = threading.Timer(timeout, process.kill)
        limit.start()
        for line in process.stdout:
            lines.append(line.strip())
            if lines[-1] == "ending":
                begin = time.monotonic()
        _, errors = process.communicate()
        limit.cancel()
        seconds = time.monotonic() - begin
        self.assertEqual(process.returncode, 0, errors)
        self.assertNotIn("Fatal", errors)
        self.assertNotIn("terminate", errors)
        return lines, seconds

    def test_samples_that_are_left_open(self):
        lines, seconds = self.run_program("""
            manifest = os.path.join(os.path.dirname(TEXT), "pictures", "samples.jsonl")
            samples = rrfp.Samples(manifest, image_size=64, image_tokens=4, context=48)
            thread = threading.Thread(target=lambda: samples.read(0, 1000, 2), daemon=True)
            thread.start()
            time.sleep(0.01)
            try:
                for _ in range(3):
                    samples.read(11, 2, 1)  # decodes ahead
            except rrfp.Busy:
                pass
            print("ending")
        """)
        self.assertEqual(lines, ["ending"])
        self.assertLess(seconds, SECONDS + 1)

    def test_ctrl_c_ends_a_waiting_rank(self):
        lines, _ = self.run_program("""
            with rrfp.Pipeline(rrfp.Graph.chain(2)) as pipeline:
                with pipeline.rank(1) as rank:
                    begin = time.monotonic()
                    interrupt_after(0.3)
                    try:
                        with rank.step(1) as step:
                            for task in step:
                                pass
                    except KeyboardInterrupt:
                        print("interrupted", time.monotonic() - begin < LIMIT)
                    pipeline.reset()
                seen = []
                def compute(task):
                    if task.kind is rrfp.Kind.FORWARD and task.stage == 0:
                        task.put(0, np.float32(1), False)
                    elif task.kind is not rrfp.Kind.FORWARD and task.stage == 1:
                        task.put(0, [])
                    seen.append(task.kind)
                pipeline.run(compute, microbatches=2, hint="gpipe")
                print(len(seen))
            """)
        self.assertEqual(lines, ["interrupted True", "8"])

    def test_ctrl_c_ends_run(self):
        lines, _ = self.run_program("""
            slow = True
            def compute(task):
                if task.stage == 0 and task.kind is rrfp.Kind.FORWARD:
                    time.sleep(0.02 * slow)
                    task.put(0, np.float32(1), False)
                elif task.stage == 1 and task.kind is not rrfp.Kind.FORWARD:
                    task.put(0, [])
            with rrfp.Pipeline(rrfp.Graph.chain(2)) as pipeline:
                for _ in range(2):
                    begin = time.monotonic()
                    interrupt_after(0.3)
                    try:
                        pipeline.run(compute, microbatches=1000, hint="gpipe")
                    except KeyboardInterrupt:
                        print("interrupted", time.monotonic() - begin < LIMIT)
                slow = False
                print(pipeline.run(compute, microbatches=10, hint="gpipe")[0].tasks)
            """)
        self.assertEqual(lines, ["interrupted True"] * 2 + ["20"])

    def test_ctrl_c_ends_a_training_step(self):
        lines, _ = self.run_program("""
            data = rrfp.Data(TEXT, context=16)
            model = rrfp.Model.gpt(vocabulary=256, context=16, layers=2, dim=32, heads=4)
            trainer = rrfp.Trainer(model, stages=2, delay_us_max=100000)
            before = trainer.weights_sha256()
            for call in (trainer.step, trainer.evaluate):
                begin = time.monotonic()
                interrupt_after(0.3)
                try:
                    call(data.batch(0, 64, 64))
                except KeyboardInterrupt:
                    print("interrupted", time.monotonic() - begin < LIMIT)
            print(trainer.weights_sha256() == before)
            print(trainer.step(data.batch(0, 2, 2)).step)
            """)
        self.assertEqual(lines, ["interrupted True"] * 2 + ["True", "1"])

    def test_ctrl_c_anywhere(self):
        """After every line that the main thread runs in these modules, in run() and in step()."""
        lines, _ = self.run_program("""
            FILES = ("_support.py", "pipeline.py", "trainer.py", "threading.py")
            count = target = 0
            def trace(frame, event, value):
                global count
                if not frame.f_code.co_filename.endswith(FILES):
                    return None
                if event in ("line", "return"):
                    count += 1
                    if count == target:
                        raise KeyboardInterrupt
                return trace
            def compute(task):
                if task.kind is rrfp.Kind.FORWARD and task.stage < 2:
                    task.put(task.stage, np.float32(1), False)
                elif task.kind is not rrfp.Kind.FORWARD and task.stage > 0:
                    task.put(task.stage - 1, [])
            pipeline = rrfp.Pipeline(rrfp.Graph.chain(3), watchdog=5)
            data = rrfp.Data(TEXT, context=16)
            trainer = rrfp.Trainer(rrfp.Model.gpt(vocabulary=256, context=16, layers=1, dim=8,
                                                  heads=1))
            batch = data.batch(0, 1, 1)
            for call in (lambda: pipeline.run(compute, microbatches=2, hint="gpipe"),
                         lambda: trainer.step(batch)):
                call()
                target, interrupted = 1, True
                while interrupted:
                    count, interrupted = 0, False
                    sys.settrace(trace)
                    try:
                        call()
                    except KeyboardInterrupt:
                        interrupted = True
                    sys.settrace(None)
                    trainer.read(0)  # nothing runs on behind the back of the program
                    call()
                    target += 1
                print(target > 30)
            """)
        self.assertEqual(lines, ["True"] * 2)

    def test_ctrl_c_twice_gives_a_task_up(self):
        lines, _ = self.run_program("""
            slow = True
            def compute(task):
                if task.stage == 0:
                    end = time.monotonic() + 2 * slow
                    while time.monotonic() < end:
                        time.sleep(0.01)
                    task.put(0, np.ones(1))
            pipeline = rrfp.Pipeline(rrfp.Graph.chain(2))
            interrupt_after(0.2); interrupt_after(0.5)
            begin = time.monotonic()
            try:
                pipeline.run(compute, microbatches=2, mode="forward")
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - begin < 1.9)
            slow = False
            print(pipeline.run(compute, microbatches=2, mode="forward")[0].tasks)
            """)
        self.assertEqual(lines, ["interrupted True", "2"])

    def test_ctrl_c_between_steps_cancels_none(self):
        lines, _ = self.run_program("""
            data = rrfp.Data(TEXT, context=16)
            model = rrfp.Model.gpt(vocabulary=256, context=16, layers=2, dim=32, heads=4)
            trainer = rrfp.Trainer(model, stages=2)
            batch, done, interrupted = data.batch(0, 4, 2), 0, 0
            while interrupted < 20:
                timer = threading.Timer(0.01, lambda: os.kill(os.getpid(), signal.SIGINT))
                try:
                    timer.start()
                    while True:
                        trainer.step(batch)
                except KeyboardInterrupt:
                    interrupted += 1
                    trainer.step(batch)
            print(interrupted)
            """)
        self.assertEqual(lines, ["20"])

    def test_ctrl_c_ends_stress(self):
        lines, _ = self.run_program("""
            begin = time.monotonic()
            interrupt_after(0.3)
            try:
                rrfp.stress(100000000)
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - begin < LIMIT)
            """)
        self.assertEqual(lines, ["interrupted True"])

    def test_a_forked_child(self):
        lines, _ = self.run_program("""
            model = rrfp.Model.gpt(vocabulary=256, context=16, layers=2, dim=32, heads=4)
            trainer = rrfp.Trainer(model, stages=2)
            data = rrfp.Data(TEXT, context=16)
            trainer.step(data.batch(0, 2, 2))
            pipeline = rrfp.Pipeline(rrfp.Graph.chain(1))
            pipeline.run(lambda task: None, microbatches=1)
            other = rrfp.Pipeline(rrfp.Graph.chain(1))
            rank = other.rank(0)
            if os.fork() == 0:
                for call in (lambda: trainer.step(data.batch(0, 2, 2)),
                             lambda: trainer.evaluate(data.batch(0, 2, 2)),
                             lambda: pipeline.run(lambda task: None, microbatches=1),
                             lambda: other.run(lambda task: None, microbatches=1),
                             lambda: rank.step(1).__enter__()):
                    try:
                        call()
                        print("no error")
                    except rrfp.Forked:
                        print("forked")
                trainer.close(); pipeline.close()
                with rrfp.Pipeline(rrfp.Graph.chain(1)) as new:
                    print(new.run(lambda task: None, microbatches=1)[0].tasks)
                sys.exit(0)
            print("status", os.waitstatus_to_exitcode(os.wait()[1]))
            print("step", trainer.step(data.batch(0, 2, 2)).step)
            """)
        self.assertEqual(lines, ["forked"] * 5 + ["2", "status 0", "step 2"])

    def test_a_program_that_forgets_to_close(self):
        lines, seconds = self.run_program("""
            model = rrfp.Model.gpt(vocabulary=256, context=16, layers=2, dim=32, heads=4)
            trainer = rrfp.Trainer(model, stages=4, log=lambda level, text: None)
            data = rrfp.Data(TEXT, context=16)
            trainer.step(data.batch(0, 2, 2))
            generator = trainer.generator(8); generator.start([1])
            pipeline = rrfp.Pipeline(rrfp.Graph.chain(2), log=lambda level, text: None)
            kept = []
            def compute(task):
                if task.stage == 0:
                    task.put(0, np.ones(1000))
                else:
                    kept.extend(task.input(0)); kept.extend(task.input_tensors(0))
            pipeline.run(compute, microbatches=4, mode="forward")
            other = rrfp.Pipeline(rrfp.Graph.chain(2))
            step = other.rank(0).step(4).__enter__()
            task = step.next()
            task.put(0, np.ones(3), False)
            print("ending")
            """)
        self.assertEqual(lines, ["ending"])
        self.assertLess(seconds, SECONDS)

    def test_stress_on_a_daemon_thread(self):
        lines, seconds = self.run_program("""
            threading.Thread(target=lambda: rrfp.stress(10**8), daemon=True).start()
            time.sleep(0.3)
            print("ending")
            """)
        self.assertEqual(lines, ["ending"])
        self.assertLess(seconds, SECONDS)

    def test_threads_that_still_work(self):
        """Daemon or not: in a wait, in a task, in a training step."""
        for daemon in (True, False):
            for where in ("next", "run", "task", "train"):
                if where == "task" and not daemon:
                    continue  # Python waits for such a thread's own code, as it must
                with self.subTest(daemon=daemon, where=where):
                    lines, seconds = self.run_program(f"""
                        model = rrfp.Model.gpt(vocabulary=256, context=16, layers=2, dim=32,
                                               heads=4)
                        trainer = rrfp.Trainer(model, stages=2, delay_us_max=10000)
                        data = rrfp.Data(TEXT, context=16)
                        pipeline = rrfp.Pipeline(rrfp.Graph.chain(2))
                        def work():
                            try:
                                if "{where}" == "next":
                                    with pipeline.rank(1).step(1) as step:
                                        step.next()
                                elif "{where}" == "train":
                                    trainer.step(data.batch(0, 64, 64))
                                else:
                                    pipeline.run(compute, microbatches=1000)
                            except rrfp.Error:
                                pass
                        def compute(task):
                            if task.stage == 0:
                                if "{where}" == "task":
                                    while True: time.sleep(0.001)
                                task.put(0, np.ones(3), False)
                            else:
                                pipeline.ranks and step_of_one_rank(task)
                        def step_of_one_rank(task):
                            if "{where}" == "run":
                                raise SystemExit
                        threading.Thread(target=work, daemon={daemon}).start()
                        time.sleep(0.3)
                        print("ending")
                        """)
                    self.assertEqual(lines, ["ending"])
                    self.assertLess(seconds, SECONDS)


if __name__ == "__main__":
    unittest.main()
