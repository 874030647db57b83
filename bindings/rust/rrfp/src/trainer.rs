// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ffi::{self, c_enum, c_path, c_string, call, report, set_flag, sys, Log};
use crate::{Batch, Model, Parameter, Result, StepReport, TrainerOptions};

report! {
    /// What a step or an evaluation gave.
    TrainReport from rrfp_train_report, rrfp_train_report_init {
        /// 1 if the batch was skipped since it was not finite; see [`skipped`](Self::skipped).
        flags: u32,
        /// Steps done, this one included.
        step: i64,
        /// Reduced as the options say; of all losses.
        loss: f64,
        /// Of the first loss, over the batch.
        loss_sum: f64,
        /// Of the first loss: sum of weights, for a language model the tokens that count.
        loss_weight: f64,
        /// Global, before clipping, without the loss scale; training only.
        gradient_norm: f64,
        /// Of this step; training only.
        lr: f64,
        /// Of this step.
        loss_scale: f64,
        wall_ns: i64,
        /// Sums over ranks and rounds from here on, as in [`StepReport`].
        total_ns: i64,
        busy_ns: i64,
        wait_input_ns: i64,
        wait_memory_ns: i64,
        wait_credit_ns: i64,
        wait_policy_ns: i64,
        other_ns: i64,
        /// Weights, gradients, optimizer.
        state_bytes: i64,
        /// Activations, messages and scratch of all ranks, each at its peak.
        tensor_bytes_peak: i64,
    }
}

impl TrainReport {
    /// Not finite, and the policy is to skip.
    pub fn skipped(&self) -> bool {
        self.flags & sys::RRFP_TRAIN_SKIPPED as u32 != 0
    }
}

report! {
    /// What a trainer is.
    TrainerInfo from rrfp_trainer_info, rrfp_trainer_info_init {
        stages: i32,
        ranks: i32,
        parameters: i32,
        /// Done; a loaded checkpoint counts.
        steps: i64,
        /// Of these, those that changed the weights.
        updates: i64,
        seed: u64,
    }
}

report! {
    /// What a stage is, and what it did in the last step or evaluation.
    StageReport from rrfp_stage_report, rrfp_stage_report_init {
        rank: i32,
        first_block: i32,
        last_block: i32,
        /// Of the first block, from 0; see [`Model::place`].
        branch: i32,
        /// That took part: not those that have nothing for the stage.
        microbatches: i32,
        /// Of its tasks, those of all rounds.
        busy_ns: i64,
    }
}

c_enum! {
    /// One of the arrays that belong to a parameter.
    Slot {
        Weight = RRFP_SLOT_WEIGHT,
        /// Of the last step that kept gradients; else zero.
        Gradient = RRFP_SLOT_GRADIENT,
        /// AdamW; SGD: the velocity.
        Moment1 = RRFP_SLOT_MOMENT1,
        /// AdamW.
        Moment2 = RRFP_SLOT_MOMENT2,
    }
}

/// What [`Trainer::save`] writes beside the weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveOptions {
    /// The newest checkpoints that stay; 0 = all.
    pub keep: i32,
    /// Samples used so far, given back by [`Trainer::load`].
    pub position: u64,
    /// A JSON object that is kept with it.
    pub user_json: Option<String>,
}

/// Weights, optimizer and one thread per rank.
///
/// It may move between threads, but is used by one at a time; a [`TrainerCanceller`] serves others:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<rrfp::Trainer>(); // cannot be shared between threads safely
/// ```
///
/// Losses, gradients and weights are the same to the bit for every number of stages, placement,
/// hint and order, unless it is nondeterministic.
pub struct Trainer {
    raw: NonNull<sys::rrfp_trainer>,
    inputs: usize,
    losses: usize,
    shared: Arc<Mutex<Handle>>,
    _log: Option<Log>,
}

// SAFETY: a trainer is bound to no thread. Not Sync: one thread at a time may use it.
unsafe impl Send for Trainer {}

impl Trainer {
    /// Makes a trainer with fresh weights; it keeps nothing of the model.
    pub fn new(model: &Model, options: &TrainerOptions) -> Result<Self> {
        let info = model.info()?;
        let (raw_options, log) = options.raw()?;
        // SAFETY: `raw_options` points into `options`; the log lives as long as the trainer.
        let raw = ffi::create(|out, error| unsafe {
            sys::rrfp_trainer_create(model.raw(), &raw_options, out, error)
        })?;
        let shared = Arc::new(Mutex::new(Handle(raw.as_ptr())));
        Ok(Self {
            raw,
            inputs: info.inputs as usize,
            losses: info.losses as usize,
            shared,
            _log: log,
        })
    }

    /// One training step: forward and backward of every microbatch, clipping, the optimizer. After
    /// an error the weights are those before the step and the trainer can go on.
    pub fn step(&mut self, batch: &Batch<'_>) -> Result<TrainReport> {
        let raw = batch.raw(self.inputs)?;
        // SAFETY: `raw` points into `batch`, which holds what the trainer reads.
        TrainReport::read(|out, error| unsafe {
            sys::rrfp_trainer_step(self.raw.as_ptr(), &raw, out, error)
        })
    }

    /// The loss of a batch, without dropout. Changes nothing.
    pub fn evaluate(&mut self, batch: &Batch<'_>) -> Result<TrainReport> {
        let raw = batch.raw(self.inputs)?;
        // SAFETY: as for step.
        TrainReport::read(|out, error| unsafe {
            sys::rrfp_trainer_evaluate(self.raw.as_ptr(), &raw, out, error)
        })
    }

    /// Ends a step from another thread.
    pub fn canceller(&self) -> TrainerCanceller {
        TrainerCanceller {
            shared: self.shared.clone(),
        }
    }

    pub fn info(&self) -> Result<TrainerInfo> {
        // SAFETY (here and below): the trainer is ours, the pointers are valid during the call.
        TrainerInfo::read(|out, error| unsafe {
            sys::rrfp_trainer_get_info(self.raw.as_ptr(), out, error)
        })
    }

    /// What a rank did in the last round of the last step or evaluation.
    pub fn rank_report(&self, rank: i32) -> Result<StepReport> {
        StepReport::read(|out, error| unsafe {
            sys::rrfp_trainer_rank_report(self.raw.as_ptr(), rank, out, error)
        })
    }

    /// What a stage is, and what it did in the last step or evaluation.
    pub fn stage_report(&self, stage: i32) -> Result<StageReport> {
        StageReport::read(|out, error| unsafe {
            sys::rrfp_trainer_stage_report(self.raw.as_ptr(), stage, out, error)
        })
    }

    /// Those of all stages.
    pub fn stage_reports(&self) -> Result<Vec<StageReport>> {
        (0..self.info()?.stages)
            .map(|stage| self.stage_report(stage))
            .collect()
    }

    /// The losses of the last step or evaluation, that of [`Model::set_loss`] first; reduced,
    /// without their factors; NaN for one that counted nothing.
    pub fn losses(&self) -> Result<Vec<f64>> {
        let mut losses = vec![0.0; self.losses];
        call(|error| unsafe {
            let (data, count) = (losses.as_mut_ptr(), losses.len());
            sys::rrfp_trainer_losses(self.raw.as_ptr(), data, count, error)
        })?;
        Ok(losses)
    }

    /// The first block of each stage.
    pub fn first_blocks(&self) -> Result<Vec<i32>> {
        let mut first_blocks = vec![0; self.info()?.stages as usize];
        call(|error| unsafe {
            sys::rrfp_trainer_first_blocks(self.raw.as_ptr(), first_blocks.as_mut_ptr(), error)
        })?;
        Ok(first_blocks)
    }

    /// Copies an array of a parameter out; `data` has its number of elements.
    pub fn read(&self, parameter: Parameter, slot: Slot, data: &mut [f32]) -> Result<()> {
        let (slot, count) = (slot as i32, data.len());
        call(|error| unsafe {
            let data = data.as_mut_ptr();
            sys::rrfp_trainer_read(self.raw.as_ptr(), parameter.0, slot, data, count, error)
        })?;
        Ok(())
    }

    /// Copies an array of a parameter in.
    pub fn write(&mut self, parameter: Parameter, slot: Slot, data: &[f32]) -> Result<()> {
        let (slot, count) = (slot as i32, data.len());
        call(|error| unsafe {
            let data = data.as_ptr();
            sys::rrfp_trainer_write(self.raw.as_ptr(), parameter.0, slot, data, count, error)
        })?;
        Ok(())
    }

    /// SHA-256 over all weights in the order of the parameters, as 64 hexadecimal digits.
    pub fn weights_sha256(&self) -> Result<String> {
        ffi::text(|buffer, capacity, size, error| unsafe {
            sys::rrfp_trainer_weights_sha256(self.raw.as_ptr(), buffer, capacity, size, error)
        })
    }

    /// The hint that steps run with, and with [`auto`](TrainerOptions::auto) why, in one line.
    pub fn describe_hint(&self) -> Result<String> {
        ffi::text(|buffer, capacity, size, error| unsafe {
            sys::rrfp_trainer_describe_hint(self.raw.as_ptr(), buffer, capacity, size, error)
        })
    }

    /// Writes the timeline of the last training steps as a trace event file.
    pub fn write_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path)?;
        call(|error| unsafe {
            sys::rrfp_trainer_write_trace(self.raw.as_ptr(), path.as_ptr(), error)
        })?;
        Ok(())
    }

    /// Writes `root/step-<step>`: complete or not there at all, whatever happens to the process or
    /// the disk. A checkpoint of the same step is replaced.
    pub fn save(&self, root: impl AsRef<Path>, options: &SaveOptions) -> Result<()> {
        let root = c_path(root)?;
        let user = options
            .user_json
            .as_deref()
            .map(|text| c_string(text, "user_json"));
        let user = user.transpose()?;
        let mut raw = ffi::init(sys::rrfp_save_options_init);
        raw.keep = options.keep;
        raw.root = root.as_ptr();
        raw.position = options.position;
        raw.user_json = user.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        call(|error| unsafe { sys::rrfp_trainer_save(self.raw.as_ptr(), &raw, error) })?;
        Ok(())
    }

    /// Continues from a checkpoint, or from the newest one in a folder of them, and gives the
    /// samples used. Stages, placement and hint need not be those of the run that wrote it. On an
    /// error the trainer is unchanged.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<u64> {
        self.load_parts(path, false)
    }

    /// The same without the optimizer, the step and the random numbers.
    pub fn load_weights(&mut self, path: impl AsRef<Path>) -> Result<u64> {
        self.load_parts(path, true)
    }

    fn load_parts(&mut self, path: impl AsRef<Path>, weights_only: bool) -> Result<u64> {
        let path = c_path(path)?;
        let mut flags = 0;
        set_flag(&mut flags, sys::RRFP_LOAD_WEIGHTS_ONLY, weights_only);
        let mut position = 0;
        call(|error| unsafe {
            let path = path.as_ptr();
            sys::rrfp_trainer_load(self.raw.as_ptr(), path, flags, &mut position, error)
        })?;
        Ok(position)
    }

    pub(crate) fn raw(&self) -> *mut sys::rrfp_trainer {
        self.raw.as_ptr()
    }
}

impl Drop for Trainer {
    fn drop(&mut self) {
        // Cancellers that are left do nothing from here on.
        lock(&self.shared).0 = ptr::null_mut();
        // SAFETY: it is ours, and nothing else points to it any more.
        unsafe { sys::rrfp_trainer_destroy(self.raw.as_ptr()) }
    }
}

impl fmt::Debug for Trainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trainer")
    }
}

/// Ends a step of a [`Trainer`] from any thread. It keeps nothing alive: once the trainer is
/// dropped it does nothing.
#[derive(Clone)]
pub struct TrainerCanceller {
    shared: Arc<Mutex<Handle>>,
}

impl TrainerCanceller {
    /// Ends the running or the next step with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub fn cancel(&self) -> Result<()> {
        let handle = lock(&self.shared);
        if handle.0.is_null() {
            return Ok(());
        }
        // SAFETY: the trainer is destroyed only after its owner has had this lock.
        call(|error| unsafe { sys::rrfp_trainer_cancel(handle.0, error) })?;
        Ok(())
    }
}

impl fmt::Debug for TrainerCanceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrainerCanceller")
    }
}

/// The trainer for its cancellers, or null once it is gone.
struct Handle(*mut sys::rrfp_trainer);

// SAFETY: used under a lock, and for nothing but rrfp_trainer_cancel, which any thread may call.
unsafe impl Send for Handle {}

fn lock(handle: &Mutex<Handle>) -> MutexGuard<'_, Handle> {
    handle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The `state.json` of a checkpoint, or of the newest one in a folder of them.
pub fn describe_checkpoint(path: impl AsRef<Path>) -> Result<String> {
    let path = c_path(path)?;
    // SAFETY: the pointers are valid during the call.
    ffi::text(|buffer, capacity, size, error| unsafe {
        sys::rrfp_checkpoint_describe(path.as_ptr(), buffer, capacity, size, error)
    })
}
