// SPDX-License-Identifier: Apache-2.0
mod common;

use common::TempDir;
use rrfp::{presets, stress, ErrorKind, Graph, Hint, Order, Simulation, SimulationOptions};

#[test]
fn a_step_in_virtual_time() {
    assert!(presets().contains(&"language"));
    let options = SimulationOptions::preset("language")
        .unwrap()
        .stages(4)
        .microbatches(12);
    let run = |hint: &str, order| {
        let options = options.clone().hint(hint).unwrap().order(order);
        let mut simulation = Simulation::new(&options).unwrap();
        let step = simulation.run(1).unwrap();
        assert_eq!(simulation.run(1).unwrap(), step); // the same seed, the same step
        assert_ne!(simulation.run(2).unwrap().makespan_ns, step.makespan_ns);
        assert!(simulation.describe().unwrap().contains(hint));
        assert_eq!((step.ranks, step.stages, step.microbatches), (4, 4, 12));
        assert!(step.makespan_ns >= step.bound_ns && step.bound_ns > 0);
        step
    };
    let strict = run("1f1b", Order::Strict);
    let ready = run("bfw", Order::Ready);
    assert_eq!(strict.peak_bytes, strict.native_bytes);
    assert!(ready.makespan_ns < strict.makespan_ns);
}

#[test]
fn measured_timelines() {
    let dir = TempDir::new("simulation");
    let path = dir.path().join("made.json");
    let graph = Graph::chain(3).unwrap();
    Hint::named("1f1b")
        .unwrap()
        .write_trace(&graph, 6, &path)
        .unwrap();
    rrfp::trace::summarize(&path).unwrap();

    let options = SimulationOptions::preset("language")
        .unwrap()
        .stages(4)
        .microbatches(8);
    let mut simulation = Simulation::new(&options.hint("zb-h1").unwrap()).unwrap();
    simulation.run(0).unwrap();
    simulation.write_trace(&path).unwrap();
    let again = SimulationOptions::trace(&path)
        .unwrap()
        .hint("zb-h1")
        .unwrap();
    let step = Simulation::new(&again).unwrap().run(0).unwrap();
    assert_eq!((step.ranks, step.microbatches, step.bound_ns), (4, 8, 0));
    let page = dir.path().join("page.html");
    rrfp::trace::draw(&path, rrfp::trace::Picture::Html, &page).unwrap();
    assert!(std::fs::read_to_string(page).unwrap().contains("<html"));
}

#[test]
fn misuse() {
    let kind = |options: SimulationOptions| {
        Simulation::new(&options)
            .and_then(|mut simulation| simulation.run(0))
            .unwrap_err()
            .kind()
    };
    let preset = |name| SimulationOptions::preset(name).unwrap();
    assert_eq!(kind(preset("no such preset")), ErrorKind::UnknownName);
    assert_eq!(
        kind(preset("language").hint("no such hint").unwrap()),
        ErrorKind::UnknownName
    );
    assert_eq!(
        kind(SimulationOptions::trace("/nowhere.json").unwrap()),
        ErrorKind::Io
    );
}

#[test]
fn random_pipelines() {
    let mut calls = 0;
    let report = stress(1, 300, |done| {
        calls += 1;
        assert!(done <= 300);
        true
    })
    .unwrap();
    assert_eq!(report.cases, 300);
    assert!(report.faults > 0);
    let bad = report.stalls + report.cap_violations + report.task_errors + report.failure_errors;
    assert_eq!((bad, report.bad_case), (0, None));
    assert!(calls > 0);
    assert!(stress(1, 1_000_000, |done| done < 100).unwrap().cases < 1_000_000);
}

#[test]
fn a_panic_in_the_callback_comes_out() {
    let result = std::panic::catch_unwind(|| stress(1, 1_000_000, |_| panic!("had enough")));
    assert_eq!(
        result.unwrap_err().downcast_ref::<&str>(),
        Some(&"had enough")
    );
}
