// SPDX-License-Identifier: Apache-2.0
//! Compares schedules in virtual time, without hardware: the same steps of a workload under several
//! hints, obeyed and as rankings of what is ready.
//!
//!     simulation [PRESET]     uniform, language (default), multimodal, straggler, ...
//!
//! Build: cargo run --release --manifest-path bindings/rust/Cargo.toml --example simulation

use rrfp::{presets, Order, Simulation, SimulationOptions};

const SEEDS: u64 = 5;
const WAYS: [(&str, Order, &str); 7] = [
    ("1f1b", Order::Paired, "1F1B, obeyed, blocking sends"),
    ("1f1b", Order::Strict, "1F1B, obeyed"),
    ("1f1b", Order::Ready, "1F1B, as a ranking"),
    ("zb-h1", Order::Strict, "ZB-H1, obeyed"),
    ("zb-v", Order::Strict, "ZB-V, obeyed"),
    ("zb-v", Order::Ready, "ZB-V, as a ranking"),
    ("auto", Order::Default, "chosen by simulation"),
];

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

/// The median makespan in milliseconds, and how far it is from the best possible.
fn measure(preset: &str, hint: &str, order: Order) -> rrfp::Result<(f64, f64)> {
    let options = SimulationOptions::preset(preset)?
        .hint(hint)?
        .order(order)
        .stages(8)
        .microbatches(32);
    let mut simulation = Simulation::new(&options)?;
    let (mut makespans, mut ratios) = (Vec::new(), Vec::new());
    for seed in 0..SEEDS {
        let step = simulation.run(seed)?;
        makespans.push(step.makespan_ns as f64 / 1e6);
        ratios.push(step.makespan_ns as f64 / step.bound_ns as f64);
    }
    Ok((median(makespans), median(ratios)))
}

fn main() -> rrfp::Result<()> {
    let preset = std::env::args().nth(1);
    let preset = preset.as_deref().unwrap_or("language");
    let known = presets();
    if !known.contains(&preset) {
        let known = known.join(" ");
        eprintln!("simulation: there is no preset {preset}; there are: {known}");
        std::process::exit(2);
    }
    println!(
        "{preset}, 8 ranks, 32 microbatches, the memory of 1F1B, medians of {SEEDS} steps\n\
         {:<30} {:>9} {:>14}",
        "", "ms", "over the bound"
    );
    for (hint, order, text) in WAYS {
        let (ms, ratio) = measure(preset, hint, order)?;
        println!("{text:<30} {ms:>9.1} {ratio:>13.3}x");
    }
    Ok(())
}
