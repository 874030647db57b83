// SPDX-License-Identifier: Apache-2.0
//! Objects that outlive what they should: the end of the process, and fork().
mod common;

use common::{pipeline, step};
use rrfp::{ErrorKind, GptOptions, Model, Next, PipelineOptions, Trainer, TrainerOptions};
use std::io::{BufRead, BufReader};
use std::mem::forget;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const CHILD: &str = "RRFP_TEST_FORGETS";

fn trainer() -> Trainer {
    let gpt = GptOptions::new()
        .vocabulary(8)
        .context(4)
        .layers(1)
        .dim(8)
        .heads(1);
    Trainer::new(&Model::gpt(&gpt).unwrap(), &TrainerOptions::new().stages(2)).unwrap()
}

/// Run by the next test in a process of its own.
#[test]
fn forgets() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    let mut waiting = ranks.pop().unwrap();
    thread::spawn(move || {
        waiting.begin_step(&step("1f1b", 1)).unwrap();
        let _ = waiting.next(None); // for ever
    });
    ranks[0].begin_step(&step("1f1b", 1)).unwrap();
    forget(ranks[0].next(None).unwrap());
    forget((trainer(), pipeline, ranks));
    println!("forgotten");
}

#[test]
fn a_process_that_forgets_ends() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "forgets", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut rest = lines.skip_while(|line| !line.as_ref().unwrap().contains("forgotten"));
    assert!(rest.next().is_some());
    let since = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if since.elapsed() > Duration::from_secs(2) => {
                child.kill().unwrap();
                panic!("the process goes on for more than 2 s");
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    assert!(status.success(), "{status}");
}

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

#[test]
fn a_forked_child_is_told() {
    let (pipeline, mut ranks) = pipeline(1, &PipelineOptions::new());
    let mut rank = ranks.pop().unwrap();
    rank.begin_step(&step("1f1b", 1)).unwrap();
    let trainer = trainer();
    // SAFETY: the child has no other thread, makes nothing but these calls, and does not return.
    let pid = unsafe { fork() };
    if pid == 0 {
        let forked = |kind: ErrorKind| kind == ErrorKind::Forked;
        let mut ok = rank
            .next(Some(Duration::ZERO))
            .map_or_else(|e| forked(e.kind()), |_| false);
        ok &= rank
            .waker()
            .wake()
            .map_or_else(|e| forked(e.kind()), |_| false);
        ok &= pipeline
            .cancel("no")
            .map_or_else(|e| forked(e.kind()), |_| false);
        ok &= pipeline
            .reset()
            .map_or_else(|e| forked(e.kind()), |_| false);
        ok &= trainer.info().map_or_else(|e| forked(e.kind()), |_| false);
        drop((rank, pipeline, trainer));
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { _exit(if ok { 0 } else { 1 }) }
    }
    assert!(pid > 0);
    let begin = Instant::now();
    let mut status = -1;
    // SAFETY: waits for the child. WNOHANG = 1.
    while unsafe { waitpid(pid, &mut status, 1) } == 0 {
        assert!(begin.elapsed() < Duration::from_secs(10), "the child hangs");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(status, 0);
    // The parent has noticed nothing.
    assert!(matches!(rank.next(None).unwrap(), Next::Task(_)));
    assert_eq!(trainer.info().unwrap().steps, 0);
}

#[test]
fn versions() {
    assert!(rrfp::version() >= (0, 1, 0));
    assert_eq!(rrfp::abi_version(), rrfp::sys::RRFP_ABI_VERSION as u32);
}
