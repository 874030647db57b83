// SPDX-License-Identifier: Apache-2.0
//! What other threads may do.
mod common;

use common::{expected, pipeline, step, Chain, TempDir};
use rrfp::{run_step, ErrorKind, LogLevel, Next, PipelineOptions, Step, Wake};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn assert_send<T: Send>() {}
fn assert_sync<T: Sync>() {}

#[test]
fn what_may_move_and_be_shared() {
    assert_send::<rrfp::Graph>();
    assert_send::<rrfp::Pipeline>();
    assert_send::<rrfp::Rank>();
    assert_send::<rrfp::Task<'_>>();
    assert_send::<rrfp::Model>();
    assert_send::<rrfp::Trainer>();
    assert_send::<rrfp::Simulation>();
    assert_send::<rrfp::TrainerOptions>();
    assert_sync::<Step>();
    assert_sync::<PipelineOptions>();
    assert_sync::<rrfp::Hint>();
    assert_sync::<rrfp::Data>();
    assert_sync::<rrfp::SharedTensor>();
    assert_sync::<rrfp::Waker>();
    assert_sync::<rrfp::Canceller>();
    assert_sync::<rrfp::TrainerCanceller>();
}

#[test]
fn wake_ends_a_wait() {
    for wake in [Wake::Yield, Wake::Park] {
        let (_pipeline, mut ranks) = pipeline(2, &PipelineOptions::new().wake(wake));
        let mut rank = ranks.pop().unwrap(); // it waits for the first one
        rank.begin_step(&step("1f1b", 1)).unwrap();
        assert!(matches!(
            rank.next(Some(Duration::ZERO)).unwrap(),
            Next::Again
        ));
        let begin = Instant::now();
        assert!(matches!(
            rank.next(Some(Duration::from_millis(20))).unwrap(),
            Next::Again
        ));
        assert!(begin.elapsed() >= Duration::from_millis(20));

        let waker = rank.waker();
        let other = waker.clone();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            other.wake().unwrap();
        });
        assert!(matches!(rank.next(None).unwrap(), Next::Again));
        thread.join().unwrap();
        drop(rank);
        waker.wake().unwrap(); // of a rank that is gone
    }
}

#[test]
fn cancel_ends_a_step() {
    let (pipeline, mut ranks) = pipeline(4, &PipelineOptions::new());
    let canceller = pipeline.canceller();
    let chain = Chain::default();
    let results = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(30));
            assert!(canceller.report().unwrap().contains("rank 0"));
            canceller.cancel("no time left").unwrap();
        });
        run_step(&mut ranks, &step("1f1b", 4), |task| {
            if task.to_string() == "3F0" {
                thread::sleep(Duration::from_millis(100));
            }
            chain.compute(task)
        })
    });
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.text().contains("no time left"), "{error}");
    }
    pipeline.reset().unwrap();
    chain.take();
    for result in run_step(&mut ranks, &step("1f1b", 4), |task| chain.compute(task)) {
        result.unwrap();
    }
    assert_eq!(chain.take(), expected());
}

/// A rank that is dropped in the middle of a step ends the step for its neighbours.
#[test]
fn dropped_rank() {
    let (pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    let mut second = ranks.pop().unwrap();
    ranks[0].begin_step(&step("1f1b", 1)).unwrap();
    second.begin_step(&step("1f1b", 1)).unwrap();
    drop(ranks);
    let error = second.next(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    second.end_step().unwrap_err();
    pipeline.reset().unwrap();
    pipeline.rank(0).unwrap(); // it may have a new one
}

#[test]
fn watchdog_and_log() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let to = lines.clone();
    let options = PipelineOptions::new()
        .watchdog(Some(Duration::from_millis(50)))
        .log(move |level, text: &str| {
            to.lock().unwrap().push((level, text.to_string()));
            panic!("a log that panics does no harm");
        });
    let (pipeline, mut ranks) = pipeline(2, &options);
    let results = run_step(&mut ranks[1..], &step("1f1b", 1), |_| Ok(()));
    let error = results.into_iter().next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    let lines = lines
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    assert!(lines
        .iter()
        .any(|(level, text)| *level != LogLevel::Info && !text.is_empty()));
    assert!(pipeline.report().unwrap().contains("rank 1"));
}

#[test]
fn two_engines_in_one_process() {
    thread::scope(|scope| {
        for hint in ["1f1b", "zb-h1"] {
            scope.spawn(move || {
                let (_pipeline, mut ranks) = pipeline(4, &PipelineOptions::new());
                for number in 0..20 {
                    let chain = Chain::default();
                    let step = step(hint, 4).number(number);
                    for result in run_step(&mut ranks, &step, |task| chain.compute(task)) {
                        assert_eq!(result.unwrap().step, number);
                    }
                    assert_eq!(chain.take(), expected());
                }
            });
        }
    });
}

/// One thread may go round all ranks.
#[test]
fn one_thread_for_all_ranks() {
    let (_pipeline, mut ranks) = pipeline(4, &PipelineOptions::new());
    let chain = Chain::default();
    for rank in &mut ranks {
        rank.begin_step(&step("1f1b", 4)).unwrap();
    }
    let mut open = [true; 4];
    let mut losses = 0;
    while open.contains(&true) {
        for (rank, open) in ranks.iter_mut().zip(&mut open) {
            match rank.next(Some(Duration::ZERO)).unwrap() {
                Next::Task(task) => {
                    assert!(chain.compute(&task).is_ok());
                    let stage = task.stage();
                    let events = task.done().unwrap();
                    losses += i32::from(events.stage_losses());
                    assert!(!events.stage_losses() || stage == 3);
                    assert!(!events.step_tasks() || events.stage_gradients());
                }
                Next::Again => {}
                Next::StepDone => *open = false,
            }
        }
    }
    assert_eq!(losses, 1);
    for rank in &mut ranks {
        rank.end_step().unwrap();
    }
    assert_eq!(chain.take(), expected());
}

#[test]
fn timelines() {
    let dir = TempDir::new("timelines");
    let (pipeline, mut ranks) = pipeline(4, &PipelineOptions::new().trace_steps(1));
    let chain = Chain::default();
    for result in run_step(&mut ranks, &step("1f1b", 4), |task| chain.compute(task)) {
        result.unwrap();
    }
    let (json, svg) = (dir.path().join("step.json"), dir.path().join("step.svg"));
    pipeline.write_trace(&json).unwrap();
    rrfp::trace::draw(&json, rrfp::trace::Picture::Svg, &svg).unwrap();
    assert!(std::fs::read_to_string(svg).unwrap().contains("<svg"));
    assert!(rrfp::trace::summarize(&json)
        .unwrap()
        .contains("\"makespan_ms\""));
    let error = rrfp::trace::summarize(dir.path().join("none.json")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

/// A timeline may be written at any time: a rank that begins a call meanwhile waits for it.
#[test]
fn timelines_while_ranks_work() {
    let dir = TempDir::new("timelines-while");
    let (_pipeline, mut ranks) = pipeline(4, &PipelineOptions::new().trace_steps(50));
    let canceller = ranks[0].canceller();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = canceller.write_trace(dir.path().join("step.json"));
            }
        });
        let mut good = true;
        for _ in 0..200 {
            let chain = Chain::default();
            let results = run_step(&mut ranks, &step("1f1b", 4), |task| chain.compute(task));
            good &= results.iter().all(|result| result.is_ok());
            if !good {
                println!("{results:?}");
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(good);
    });
}
