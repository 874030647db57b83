// SPDX-License-Identifier: Apache-2.0
//! Own stage code on the toy chain: exact results, failures, reset.
mod common;

use common::{expected, pipeline, step, Chain, X};
use rrfp::{run_step, Error, ErrorKind, Graph, Hint, HintTask, Next, Order, Pipeline, TaskKind};
use rrfp::{PipelineOptions, StageError, Wake};
use std::sync::Mutex;
use std::time::Duration;

/// Runs a clean step and compares.
fn check_clean(ranks: &mut [rrfp::Rank], step: &rrfp::Step) {
    let chain = Chain::default();
    for (r, report) in run_step(ranks, step, |task| chain.compute(task))
        .into_iter()
        .enumerate()
    {
        let report = report.unwrap();
        assert_eq!(report.rank, r as i32);
        assert!(report.tasks == 8 || report.tasks == 12, "{report:?}");
        assert!(report.total_ns >= report.busy_ns);
    }
    assert_eq!(chain.take(), expected());
    assert_eq!(common::live_bytes(ranks), [0; 4]);
}

#[test]
fn every_hint_gives_the_same() {
    for name in [
        "gpipe", "1f1b", "bf", "bfw", "zb-h1", "zb-h2", "rf-1", "bfw-sort",
    ] {
        let (_pipeline, mut ranks) = pipeline(4, &PipelineOptions::new());
        for number in 0..3 {
            check_clean(&mut ranks, &step(name, 4).number(number));
        }
    }
    for name in ["gpipe", "1f1b", "zb-h1", "zb-h2"] {
        for order in [Order::Strict, Order::Paired] {
            let (_pipeline, mut ranks) = pipeline(4, &PipelineOptions::new());
            check_clean(&mut ranks, &step(name, 4).order(order));
        }
    }
}

#[test]
fn options() {
    let options = PipelineOptions::new()
        .wake(Wake::Park)
        .cap_slots(2)
        .rank_cap_slots(&[0, 3, 0, 1])
        .credits(2)
        .mailbox_capacity(4)
        .hold_permille(10)
        .nondeterministic(true)
        .watchdog(Some(Duration::from_secs(60)));
    let (pipeline, mut ranks) = pipeline(4, &options);
    let chain = Chain::default();
    let reports = run_step(&mut ranks, &step("1f1b", 4), |task| chain.compute(task));
    let peaks: Vec<_> = reports
        .into_iter()
        .map(|report| report.unwrap().peak_slots)
        .collect();
    assert_eq!(chain.take(), expected());
    assert!(
        peaks[0] <= 2 && peaks[1] <= 3 && peaks[2] <= 2 && peaks[3] == 1,
        "{peaks:?}"
    );
    assert!(pipeline.report().unwrap().contains("rank 3"));
}

#[test]
fn explicit_hints() {
    let graph = Graph::chain(2).unwrap();
    let mut lists = Vec::new();
    for rank in 0..2 {
        for kind in [
            TaskKind::Forward,
            TaskKind::InputGradient,
            TaskKind::WeightGradient,
        ] {
            for microbatch in 0..3 {
                let priority = microbatch as i64 + 10 * kind as i64;
                lists.push(HintTask {
                    rank,
                    stage: rank,
                    kind,
                    microbatch,
                    priority,
                });
            }
        }
    }
    let text = "0F0,0F1,0F2,0I0,0I1,0I2,0W0,0W1,0W2\n1F0,1F1,1F2,1I0,1I1,1I2,1W0,1W1,1W2\n";
    let from_tasks = Hint::from_tasks(2, &lists).unwrap();
    let from_priorities = Hint::from_priorities(&lists).unwrap();
    let from_text = Hint::from_text(text).unwrap();
    for hint in [&from_tasks, &from_text, &from_priorities] {
        assert_eq!(hint.to_text(&graph, 3).unwrap(), text);
        hint.check(&graph, 3, Order::Strict).unwrap();
    }
    let info = from_text.info().unwrap();
    assert_eq!((info.ranks, info.stages, info.microbatches), (2, 2, 3));
    assert!(from_text
        .lower(&graph, 3, Default::default())
        .unwrap()
        .contains("0SEND_F0"));
    assert_eq!(from_text.note().unwrap(), "");

    let error = Hint::from_text("0F0,0B0\n0X1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Syntax);
    assert!(error.text().contains("row 2"), "{error}");
    let bad = Hint::from_text("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1").unwrap();
    let error = bad.check(&graph, 2, Order::Strict).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadOrder);
    let layout = Hint::layout("dualpipe").unwrap();
    assert_eq!((layout.chunks, layout.streams), (1, 2));
}

#[test]
fn strict_order_is_obeyed() {
    let (_pipeline, mut ranks) = pipeline(4, &PipelineOptions::new());
    let hint = Hint::named("zb-h1").unwrap();
    let text = hint.to_text(&Graph::chain(4).unwrap(), 4).unwrap();
    let orders: Vec<_> = (0..4).map(|_| Mutex::new(Vec::new())).collect();
    let chain = Chain::default();
    let step = rrfp::Step::new(&hint, 4).order(Order::Strict);
    for report in run_step(&mut ranks, &step, |task| {
        orders[task.rank() as usize]
            .lock()
            .unwrap()
            .push(task.to_string());
        chain.compute(task)
    }) {
        report.unwrap();
    }
    for (order, row) in orders.iter().zip(text.lines()) {
        assert_eq!(order.lock().unwrap().join(","), row);
    }
}

/// All ranks hear of a failure of 1F2 with its text, and the pipeline works after a reset.
fn check_failure(code: i32, text: &str, fail: fn() -> Result<(), StageError>) {
    let (pipeline, mut ranks) = pipeline(4, &PipelineOptions::new());
    let chain = Chain::default();
    for _ in 0..3 {
        let results = run_step(&mut ranks, &step("zb-h1", 4), |task| {
            if task.to_string() == "1F2" {
                fail()?;
            }
            chain.compute(task)
        });
        assert_eq!(results.len(), 4);
        for result in results {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StageFailed);
            assert_eq!(error.status_name(), "RRFP_ERR_STAGE_FAILED");
            assert_eq!(
                (error.rank(), error.stage(), error.microbatch()),
                (Some(1), Some(1), Some(2))
            );
            assert_eq!(error.task_kind(), Some(TaskKind::Forward));
            assert_eq!(error.user_code(), code);
            assert!(error.text().ends_with(text), "{error}");
        }
        let error = ranks[0].begin_step(&step("zb-h1", 4)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StageFailed, "{error}");
        pipeline.reset().unwrap();
        check_clean(&mut ranks, &step("zb-h1", 4));
    }
}

#[test]
fn failing_stage() {
    check_failure(-7, "too hot: 451 °F", || {
        Err(StageError::new(-7, "too hot: 451 °F"))
    });
    check_failure(0, "No such file or directory (os error 2)", || {
        std::fs::read("/nowhere/at/all")?;
        Ok(())
    });
    check_failure(0, "a zero\u{fffd}byte", || Err("a zero\0byte".into()));
}

/// What a stage panics with may panic again when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the payload of a panic was dropped");
    }
}

#[test]
fn panicking_stage() {
    check_failure(
        0,
        "index out of bounds: the len is 2 but the index is 5",
        || {
            let (values, index) = (vec![1, 2], X.len() + 1);
            Err(StageError::from(values[index]))
        },
    );
    check_failure(0, "burnt down", || panic!("burnt down"));
    check_failure(0, "stage code panicked", || std::panic::panic_any(17));
    check_failure(0, "stage code panicked", || std::panic::panic_any(Bomb));
}

#[test]
fn missing_output_fails_the_task() {
    let (pipeline, mut ranks) = pipeline(4, &PipelineOptions::new());
    let chain = Chain::default();
    let results = run_step(&mut ranks, &step("1f1b", 4), |task| {
        if task.to_string() == "2F1" {
            return Ok(());
        }
        chain.compute(task)
    });
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StageFailed);
        assert!(error.text().contains("has not put its output"), "{error}");
    }
    pipeline.reset().unwrap();
    check_clean(&mut ranks, &step("1f1b", 4));
}

#[test]
fn dropped_task_has_failed() {
    let (pipeline, mut ranks) = pipeline(1, &PipelineOptions::new());
    ranks[0].begin_step(&step("1f1b", 1)).unwrap();
    let next = ranks[0].next(None).unwrap();
    assert!(matches!(next, Next::Task(_)));
    drop(next);
    let error = ranks[0].next(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StageFailed);
    assert!(
        error
            .text()
            .ends_with("task 0F0 was dropped before it was done"),
        "{error}"
    );
    let same: Error = ranks[0].end_step().unwrap_err();
    assert_eq!(same.text(), error.text());
    pipeline.reset().unwrap();
}

#[test]
fn a_step_that_one_rank_cannot_begin_ends_for_all() {
    let (pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    let mut second = ranks.pop().unwrap();
    let mut first = ranks.pop().unwrap();
    let waiting = std::thread::spawn(move || {
        let result = first.run_step(&step("1f1b", 2), |task| {
            task.put_copy(0, &[1f32], &[])?;
            Ok(())
        });
        (first, result)
    });
    let error = second.run_step(&step("1f1b", 0), |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let (_first, result) = waiting.join().unwrap();
    let heard = result.unwrap_err();
    assert_eq!(heard.kind(), ErrorKind::Cancelled, "{heard}");
    assert!(heard.text().contains(error.text()), "{heard}");
    pipeline.reset().unwrap();
}

#[test]
fn skipped_stages_and_forward_only() {
    let mut graph = Graph::chain(2).unwrap();
    let pipeline = Pipeline::new(&graph, &PipelineOptions::new()).unwrap();
    let mut ranks = pipeline.ranks().unwrap();
    // Microbatch 1 skips stage 0.
    let skip = [false, true, false, false];
    let step = step("bf", 2)
        .skip(&skip)
        .forward_only(true)
        .activation_bytes(&[8, 0, 8, 8]);
    let reports = run_step(&mut ranks, &step, |task| {
        match (task.stage(), task.microbatch()) {
            (0, m) => {
                assert_eq!(m, 0);
                assert!(task.wants_output(0)?);
                task.put_copy(0, &[1f32], &[])?;
            }
            (_, m) => assert_eq!(task.input(0)?.is_none(), m == 1),
        }
        Ok(())
    });
    let tasks: Vec<_> = reports
        .into_iter()
        .map(|report| report.unwrap().tasks)
        .collect();
    assert_eq!(tasks, [1, 2]);
    graph.place_stage(1, 0).unwrap();
    assert_eq!(graph.check().unwrap_err().kind(), ErrorKind::UnplacedStage);
}
