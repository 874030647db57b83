// SPDX-License-Identifier: Apache-2.0
//! Nothing is copied that need not be, and nothing is left behind.
#![deny(unsafe_op_in_unsafe_fn)]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::raw::c_void;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{pipeline, step};
use rrfp::{run_step, PipelineOptions, Rank, SharedTensor, StageError, StepReport, Task, TaskKind};
use rrfp::{Tensor, BF16};

/// Counts what this thread of the program has on the heap. Engine memory is not in it.
struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: passes everything on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test at a time, since they look at one counter.
static ALONE: Mutex<()> = Mutex::new(());

const LENGTH: usize = 1 << 16;

fn run(
    ranks: &mut [Rank],
    microbatches: i32,
    compute: impl Fn(&Task<'_>) -> Result<(), StageError> + Sync,
) -> Vec<StepReport> {
    let step = step("1f1b", microbatches).forward_only(true);
    let reports = run_step(ranks, &step, compute);
    reports.into_iter().map(|report| report.unwrap()).collect()
}

#[test]
fn nothing_is_copied() {
    let _alone = ALONE.lock().unwrap();
    let (_pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    let sent = Mutex::new(Vec::new());
    let received = Mutex::new(Vec::new());
    let reports = run(&mut ranks, 4, |task| {
        let m = task.microbatch();
        if task.stage() == 1 {
            let message = task.input(0)?.ok_or("nothing")?;
            let elements: &[f32] = message[0].as_slice()?;
            assert!(elements.iter().all(|e| *e == m as f32));
            assert_eq!(message[0].shape(), [LENGTH as i64 / 4, 4]);
            received
                .lock()
                .unwrap()
                .push((m, message[0].as_ptr() as usize));
            return Ok(());
        }
        let shape = [LENGTH as i64 / 4, 4];
        let tensor = if m % 2 == 0 {
            let mut output = task.alloc::<f32>(&shape)?;
            assert!(output.iter().all(|e| *e == 0.0));
            output.fill(m as f32);
            assert_eq!(output.as_ptr() as usize % 64, 0);
            output.into_tensor()
        } else {
            task.wrap(vec![m as f32; LENGTH], &shape)?
        };
        sent.lock().unwrap().push((m, tensor.as_ptr() as usize));
        task.put(0, &[tensor])?;
        Ok(())
    });
    assert_eq!(*sent.lock().unwrap(), *received.lock().unwrap());
    assert!(reports[0].tensor_bytes_peak >= 4 * LENGTH as i64);
}

#[test]
fn vectors_that_were_given_away_are_dropped() {
    let _alone = ALONE.lock().unwrap();
    let (_pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    let turn = |ranks: &mut [Rank]| {
        run(ranks, 8, |task| {
            match task.stage() {
                0 => task.put_owned(0, vec![1u8; LENGTH], &[LENGTH as i64])?,
                _ => drop(task.input(0)?),
            }
            Ok(())
        });
        assert_eq!(common::live_bytes(ranks), [0, 0]);
    };
    turn(&mut ranks);
    let before = LIVE.load(Ordering::Relaxed);
    for _ in 0..50 {
        turn(&mut ranks);
    }
    let left = LIVE.load(Ordering::Relaxed) - before;
    assert!(left < LENGTH as isize, "{left} bytes are left");
}

/// Of failed steps too: vectors in messages, in the hands of tasks, and of calls that were refused.
#[test]
fn failed_steps_leave_nothing() {
    let _alone = ALONE.lock().unwrap();
    let before = LIVE.load(Ordering::Relaxed);
    let (pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    for turn in 0..20 {
        let results = run_step(&mut ranks, &step("gpipe", 8).forward_only(true), |task| {
            assert!(task.wrap(vec![0u8; LENGTH], &[3]).is_err());
            if task.stage() == 1 && task.microbatch() == 3 {
                return Err(format!("turn {turn}").into());
            }
            if task.stage() == 0 {
                task.put_owned(0, vec![1u8; LENGTH], &[LENGTH as i64])?;
            }
            Ok(())
        });
        for result in results {
            assert!(result
                .unwrap_err()
                .text()
                .ends_with(&format!("turn {turn}")));
        }
        pipeline.reset().unwrap();
        let left = LIVE.load(Ordering::Relaxed) - before;
        assert!(left < LENGTH as isize, "{left} bytes are left");
    }
}

#[test]
fn tensors_that_outlive_their_tasks() {
    let _alone = ALONE.lock().unwrap();
    let (pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    let kept: Mutex<Vec<SharedTensor>> = Mutex::new(Vec::new());
    let passed_on = AtomicUsize::new(0);
    run(&mut ranks, 3, |task| {
        if task.stage() == 0 {
            // The same memory for all microbatches, put again and again.
            let mut kept = kept.lock().unwrap();
            if kept.is_empty() {
                let mut output = task.alloc_uninit::<i32>(&[5])?;
                for (k, element) in output.iter_mut().enumerate() {
                    element.write(k as i32);
                }
                // SAFETY: all have been written.
                kept.push(unsafe { output.assume_init() }.into_tensor().retain()?);
            }
            let empty = Tensor::from_slice::<BF16>(&[], &[0, 7])?;
            assert_eq!(empty.retain()?.tensor().shape(), [0, 7]);
            task.put(0, &[kept[0].tensor(), empty])?;
        } else {
            let message = task.input(0)?.ok_or("nothing")?;
            assert_eq!(message.len(), 2);
            assert_eq!(message[0].as_slice::<i32>()?, [0, 1, 2, 3, 4]);
            assert!(message[1].is_empty() && message[1].as_slice::<BF16>()?.is_empty());
            passed_on.fetch_add(message[0].as_ptr() as usize, Ordering::Relaxed);
            kept.lock().unwrap().push(message[0].retain()?);
        }
        Ok(())
    });
    assert_eq!(common::live_bytes(&mut ranks), [20, 0]);
    let kept = kept.into_inner().unwrap();
    assert_eq!(kept.len(), 4);
    assert_eq!(
        passed_on.into_inner(),
        3 * kept[0].tensor().as_ptr() as usize
    );
    drop((ranks, pipeline));
    // Still there, for any thread.
    std::thread::spawn(move || {
        for shared in kept.clone() {
            assert_eq!(shared.tensor().as_slice::<i32>().unwrap(), [0, 1, 2, 3, 4]);
        }
    })
    .join()
    .unwrap();
}

#[test]
fn opaque_pointers_travel() {
    let _alone = ALONE.lock().unwrap();
    let (_pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    run(&mut ranks, 2, |task| {
        let opaque = (task.microbatch() + 100) as usize as *mut c_void;
        if task.stage() == 0 {
            task.put_with(0, &[], opaque)?;
        } else {
            let message = task.input(0)?.ok_or("nothing")?;
            assert!(message.is_empty());
            assert_eq!(message.opaque(), opaque);
        }
        Ok(())
    });
}

#[test]
fn gradients_that_are_zero() {
    let _alone = ALONE.lock().unwrap();
    let (_pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    let results = run_step(&mut ranks, &step("1f1b", 2), |task| {
        match (task.stage(), task.kind()) {
            (0, TaskKind::Forward) => {
                let x = Tensor::from_slice(&[1f32], &[1])?.wants_gradient(true);
                task.put(0, &[x.clone(), x])?;
            }
            (0, _) => {
                let message = task.input(0)?.ok_or("nothing")?;
                assert!(message[0].is_empty());
                assert_eq!(message[0].dtype(), rrfp::DType::None);
                assert_eq!(message[1].item::<f32>()?, 3.0);
            }
            (_, TaskKind::Forward) => assert!(task.input(0)?.unwrap()[1].is_gradient_wanted()),
            (_, TaskKind::WeightGradient) => {}
            _ => task.put(0, &[Tensor::none(), Tensor::from_slice(&[3f32], &[1])?])?,
        }
        Ok(())
    });
    for result in results {
        result.unwrap();
    }
    assert_eq!(common::live_bytes(&mut ranks), [0, 0]);
}

#[test]
fn log_closures_are_dropped() {
    let _alone = ALONE.lock().unwrap();
    let witness = Arc::new(());
    let clone = witness.clone();
    let options = PipelineOptions::new().log(move |_, _| drop(clone.clone()));
    let (pipeline, ranks) = pipeline(1, &options);
    drop((options, pipeline));
    assert_eq!(Arc::strong_count(&witness), 2); // the rank still works
    drop(ranks);
    assert_eq!(Arc::strong_count(&witness), 1);
}

/// The structs of dlpack.h.
#[repr(C)]
struct DlManagedTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManagedTensor)>,
}

static DELETED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn delete(_: *mut DlManagedTensor) {
    DELETED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn dlpack() {
    let _alone = ALONE.lock().unwrap();
    let (_pipeline, mut ranks) = pipeline(2, &PipelineOptions::new());
    let mut elements = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut shape = [2i64, 3];
    let mut strides = [3i64, 1];
    let mut managed = DlManagedTensor {
        data: elements.as_mut_ptr().cast(),
        device_type: 1,
        device_id: 0,
        ndim: 2,
        code: 2,
        bits: 32,
        lanes: 1,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(delete),
    };
    let foreign = &mut managed as *mut DlManagedTensor as *mut rrfp::sys::DLManagedTensor;
    // SAFETY: `managed` outlives the views, and nobody writes to it.
    let view = unsafe { Tensor::from_dlpack(foreign) }.unwrap();
    assert_eq!(view.shape(), [2, 3]);
    assert_eq!(
        view.as_slice::<f32>().unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );

    let at = elements.as_ptr() as usize;
    let foreign = foreign as usize; // for the threads
    let ours = Mutex::new(0);
    run(&mut ranks, 1, |task| {
        if task.stage() == 0 {
            // SAFETY: as above; the deleter may be called on any thread.
            task.put(0, &[unsafe { task.wrap_dlpack(foreign as *mut _) }?])?;
        } else {
            let message = task.input(0)?.ok_or("nothing")?;
            assert_eq!(message[0].as_ptr() as usize, at);
            *ours.lock().unwrap() = message[0].to_dlpack()? as usize;
        }
        Ok(())
    });
    drop(ranks);
    assert_eq!(DELETED.load(Ordering::Relaxed), 0); // it is still referred to by the one we made
    let ours = *ours.lock().unwrap() as *mut DlManagedTensor;
    // SAFETY: it is ours to read and delete.
    unsafe {
        assert_eq!(
            ((*ours).data as usize, (*ours).ndim, *(*ours).shape),
            (at, 2, 2)
        );
        ((*ours).deleter.unwrap())(ours);
    }
    assert_eq!(DELETED.load(Ordering::Relaxed), 1);

    strides = [1, 2];
    // SAFETY: as above.
    let error = unsafe { Tensor::from_dlpack(foreign as *mut _) }.unwrap_err();
    assert_eq!(error.kind(), rrfp::ErrorKind::TensorMismatch, "{error}");
    assert_eq!(strides, [1, 2]);
}
