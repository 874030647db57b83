// SPDX-License-Identifier: Apache-2.0
//! Simulates a workload with several schedules and policies, and says how long a step takes, how
//! much memory its worst rank holds and how much of the time ranks idle: means over a few seeds.
//!
//!     simulation [PRESET]     default: language
//!
//! Build: cargo run --release --manifest-path bindings/rust/Cargo.toml --example simulation

use rrfp::{presets, ErrorKind, Simulation, SimulationOptions};

const HINTS: [&str; 6] = ["gpipe", "1f1b", "zb-h1", "zb-v", "bfw", "rf-1"];
const SEEDS: u64 = 3;

struct Row {
    makespan_ms: f64,
    over_bound: f64,
    memory: f64,
    idle: f64,
}

fn simulate(preset: &str, hint: &str) -> rrfp::Result<Row> {
    let options = SimulationOptions::preset(preset)?
        .hint(hint)?
        .stages(8)
        .microbatches(32)
        .cap(0.0);
    let mut simulation = Simulation::new(&options)?;
    let mut row = Row {
        makespan_ms: 0.0,
        over_bound: 0.0,
        memory: 0.0,
        idle: 0.0,
    };
    for seed in 0..SEEDS {
        let step = simulation.run(seed)?;
        let share = 1.0 / SEEDS as f64;
        let makespan = step.makespan_ns as f64;
        row.makespan_ms += share * makespan / 1e6;
        row.over_bound += share * (makespan / step.bound_ns as f64 - 1.0);
        row.memory += share * step.peak_bytes as f64 / step.native_bytes as f64;
        row.idle += share * (1.0 - step.busy_ns as f64 / (makespan * f64::from(step.ranks)));
    }
    Ok(row)
}

fn main() -> rrfp::Result<()> {
    let preset = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "language".to_string());
    println!("{preset}: 8 devices, 32 microbatches, {SEEDS} seeds; memory 1 = strict 1F1B");
    println!(
        "{:<8}{:>12}{:>14}{:>10}{:>8}",
        "hint", "step", "over bound", "memory", "idle"
    );
    for hint in HINTS {
        match simulate(&preset, hint) {
            Ok(row) => println!(
                "{hint:<8}{:>9.1} ms{:>13.1}%{:>10.2}{:>7.1}%",
                row.makespan_ms,
                100.0 * row.over_bound,
                row.memory,
                100.0 * row.idle
            ),
            Err(error) if error.kind() == ErrorKind::UnknownName => {
                eprintln!("simulation: {error}; presets: {}", presets().join(", "));
                return Err(error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
