// SPDX-License-Identifier: Apache-2.0
//! Runs a scenario (../scenarios/README.md) and prints what came out.
//!
//!     scenario FILE

mod chain;
mod file;
mod gpt;
mod number;
mod vision;

use std::error::Error;

fn run(path: &str) -> Result<(), Box<dyn Error>> {
    let mut keys = file::Keys::read(path)?;
    match keys.text("scenario")?.as_str() {
        "chain" => chain::run(keys),
        "gpt" => gpt::run(keys),
        "vision" => vision::run(keys),
        other => Err(format!("{path}: scenario {other} is not known").into()),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [path] => run(path),
        _ => Err("usage: scenario FILE".into()),
    };
    if let Err(error) = result {
        eprintln!("scenario: {error}");
        std::process::exit(1);
    }
}
