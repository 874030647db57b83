// SPDX-License-Identifier: Apache-2.0
//! Wrong calls are errors that name what is wrong.
mod common;

use common::{pipeline, step};
use rrfp::{
    DType, Error, ErrorKind, Graph, Hint, Next, Pipeline, PipelineOptions, Stage, Task, Tensor,
};

/// Runs `check` on the forward of the first of two stages.
fn on_first_forward(options: fn(&mut Graph), check: impl FnOnce(&Task<'_>)) {
    let mut graph = Graph::chain(2).unwrap();
    options(&mut graph);
    let pipeline = Pipeline::new(&graph, &PipelineOptions::new()).unwrap();
    let mut rank = pipeline.rank(0).unwrap();
    rank.begin_step(&step("1f1b", 1)).unwrap();
    match rank.next(None).unwrap() {
        Next::Task(task) => {
            check(&task);
            task.done().unwrap(); // what was wrong did no harm
        }
        other => panic!("{other:?}"),
    };
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, kind: ErrorKind, text: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.text().contains(text), "{error}");
}

#[test]
fn tensors() {
    on_first_forward(
        |graph| graph.declare_tensor(0, DType::F32, &[-1, 3], true).unwrap(),
        |task| {
            let kind = ErrorKind::TensorMismatch;
            let wanting = |tensor: Tensor<'static>| [tensor.wants_gradient(true)];
            let f64s = Tensor::from_slice(&[0f64; 3], &[1, 3]).unwrap();
            refused(task.put(0, &wanting(f64s)), kind, "declared as");
            let wide = Tensor::from_slice(&[0f32; 4], &[1, 4]).unwrap();
            refused(task.put(0, &wanting(wide)), kind, "declared as");
            let good = Tensor::from_slice(&[0f32; 6], &[2, 3]).unwrap();
            refused(
                task.put(0, std::slice::from_ref(&good)),
                kind,
                "does not ask for a gradient",
            );
            refused(task.put(0, &[]), kind, "got 0 tensors");
            refused(Tensor::from_slice(&[0f32; 6], &[2, 4]), kind, "[2, 4]");
            refused(Tensor::from_slice(&[0f32; 6], &[-2, -3]), kind, "[-2, -3]");
            refused(
                Tensor::from_slice(&[0f32; 1], &[i64::MAX, i64::MAX]),
                kind,
                "shape",
            );
            refused(Tensor::from_slice(&[0f32; 1], &[1; 9]), kind, "ndim is 9");
            refused(task.alloc::<f32>(&[1; 9]), kind, "9");
            refused(task.alloc::<f32>(&[-1]), kind, "-1");
            refused(task.alloc::<f64>(&[1 << 50]), kind, "too large");
            refused(task.wrap(vec![0f32; 5], &[2, 3]), kind, "5 elements");
            refused(good.as_slice::<i32>(), kind, "of F32, not of I32");
            refused(good.item::<f32>(), kind, "6 elements");
            refused(good.retain(), kind, "cannot be retained");
            refused(good.to_dlpack(), ErrorKind::InvalidArgument, "buffer");
            task.put(0, &wanting(good.clone())).unwrap();
            refused(
                task.put(0, &wanting(good)),
                ErrorKind::BadState,
                "already put",
            );
        },
    );
}

#[test]
fn edges() {
    on_first_forward(
        |_| {},
        |task| {
            refused(task.input(7), ErrorKind::InvalidArgument, "edge 7");
            refused(task.input(0), ErrorKind::BadState, "no gradient");
            refused(task.put(-1, &[]), ErrorKind::InvalidArgument, "edge -1");
            refused(task.wants_output(3), ErrorKind::InvalidArgument, "edge 3");
            task.put_copy(0, &[1i64], &[1]).unwrap();
        },
    );
}

#[test]
fn states() {
    let (pipeline, mut ranks) = pipeline(1, &PipelineOptions::new());
    let rank = &mut ranks[0];
    refused(rank.next(None), ErrorKind::BadState, "begin_step");
    refused(rank.end_step(), ErrorKind::BadState, "no step");
    refused(pipeline.rank(0), ErrorKind::BadState, "rank 0");
    refused(pipeline.rank(5), ErrorKind::OutOfRange, "5");
    refused(
        pipeline.write_trace("/tmp/none.json"),
        ErrorKind::BadState,
        "trace_steps",
    );
    let short = step("1f1b", 2).skip(&[false]);
    refused(
        rank.begin_step(&short),
        ErrorKind::OutOfRange,
        "skip has 1 entries; expected 2",
    );
    let short = step("1f1b", 2).activation_bytes(&[1; 3]);
    refused(rank.begin_step(&short), ErrorKind::OutOfRange, "expected 2");
    refused(
        rank.begin_step(&step("1f1b", -4)),
        ErrorKind::InvalidArgument,
        "-4",
    );
    rank.begin_step(&step("1f1b", 1)).unwrap();
    refused(
        rank.begin_step(&step("1f1b", 1)),
        ErrorKind::BadState,
        "end_step",
    );
}

/// A task that was forgotten holds nobody up: the rank says what is wrong, and after a failure the
/// pipeline can be reset. One that is in use forbids the reset.
#[test]
fn forgotten_and_open_tasks() {
    let (pipeline, mut ranks) = pipeline(1, &PipelineOptions::new());
    let rank = &mut ranks[0];
    rank.begin_step(&step("1f1b", 1)).unwrap();
    {
        let task = rank.next(None).unwrap();
        refused(pipeline.reset(), ErrorKind::Busy, "has not ended");
        std::mem::forget(task);
    }
    refused(pipeline.reset(), ErrorKind::Busy, "has not ended");
    refused(rank.next(None), ErrorKind::BadState, "0F0");
    pipeline.cancel("enough").unwrap();
    pipeline.reset().unwrap();
    rank.begin_step(&step("1f1b", 1)).unwrap();
    assert!(matches!(rank.next(None).unwrap(), Next::Task(_)));
}

#[test]
fn descriptions() {
    refused(Hint::named("fastest"), ErrorKind::UnknownName, "fastest");
    refused(
        Hint::named("a\0b"),
        ErrorKind::InvalidArgument,
        "position 1",
    );
    refused(Graph::new(0), ErrorKind::InvalidArgument, "ranks is 0");
    let mut graph = Graph::new(1).unwrap();
    refused(graph.add_edge(0, 1), ErrorKind::OutOfRange, "");
    graph.add_stage(&Stage::new().rank(0)).unwrap();
    graph.add_stage(&Stage::new().rank(0).loss(true)).unwrap();
    graph.add_edge(0, 1).unwrap();
    graph.add_edge(1, 0).unwrap();
    refused(graph.check(), ErrorKind::Cycle, "");
    let options = PipelineOptions::new().rank_cap_slots(&[1, 2]);
    refused(
        Pipeline::new(&graph, &options),
        ErrorKind::OutOfRange,
        "expected 1",
    );
    let error = Hint::named("fastest").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{} (RRFP_ERR_UNKNOWN_NAME)", error.text())
    );
    assert_eq!(
        (error.rank(), error.stage(), error.task_kind()),
        (None, None, None)
    );
    assert_eq!(error.status(), rrfp::sys::RRFP_ERR_UNKNOWN_NAME);
}
