// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use crate::ffi::{self, area, c_enum, check_length, set_flag, setters, sys, Log, Raw};
use crate::pipeline::watchdog_ms;
use crate::{Hint, Injection, LogLevel, Order, Placement, Result, Wake};

c_enum! {
    /// How weights change.
    Optimizer {
        AdamW = RRFP_OPTIMIZER_ADAMW,
        Sgd = RRFP_OPTIMIZER_SGD,
    }
}

c_enum! {
    /// How the learning rate falls after the warm-up.
    Decay {
        /// It stays.
        None = RRFP_DECAY_NONE,
        /// To `lr_min` at `decay_steps`, along half a cosine.
        Cosine = RRFP_DECAY_COSINE,
        /// To `lr_min` at `decay_steps`, along a line.
        Linear = RRFP_DECAY_LINEAR,
    }
}

c_enum! {
    /// What the loss of a batch is.
    Reduction {
        /// The sum of all losses / the sum of their weights.
        Mean = RRFP_REDUCTION_MEAN,
        Sum = RRFP_REDUCTION_SUM,
    }
}

c_enum! {
    /// What happens when a loss or the norm of the gradients is infinite or not a number.
    NonFinite {
        /// The step fails, weights as before it.
        Stop = RRFP_NON_FINITE_STOP,
        /// Weights and optimizer stay as they were, the step counts.
        Skip = RRFP_NON_FINITE_SKIP,
    }
}

/// How a trainer works. What is not set is as `rrfp_trainer_options_init` sets it.
#[derive(Clone, Debug)]
pub struct TrainerOptions {
    raw: Raw<sys::rrfp_trainer_options>,
    first_blocks: Vec<i32>,
    stage_ranks: Vec<i32>,
    hint: Option<Hint>,
    log: Option<Log>,
}

impl Default for TrainerOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl TrainerOptions {
    pub fn new() -> Self {
        Self {
            raw: Raw(ffi::init(sys::rrfp_trainer_options_init)),
            first_blocks: Vec::new(),
            stage_ranks: Vec::new(),
            hint: None,
            log: None,
        }
    }

    /// Weight gradients add up as they become ready.
    #[must_use]
    pub fn nondeterministic(mut self, on: bool) -> Self {
        set_flag(
            &mut self.raw.0.flags,
            sys::RRFP_TRAINER_NONDETERMINISTIC,
            on,
        );
        self
    }

    /// As if every block were to be computed again for backward.
    #[must_use]
    pub fn recompute(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_TRAINER_RECOMPUTE, on);
        self
    }

    /// Hint, order and holding follow what the last steps took, replayed in a simulator while the
    /// next step runs; set none of the three then. Results are the same.
    #[must_use]
    pub fn auto(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_TRAINER_AUTO, on);
        self
    }

    setters! {
        /// 0 = 1.
        stages: i32,
        /// 0 = stages; for [`Placement::V`] and [`Placement::Loop`] half of them, rounded up.
        ranks: i32,
        placement: Placement as i32,
        order: Order as i32,
        wake: Wake as i32,
        /// See [`PipelineOptions`](crate::PipelineOptions).
        hold_permille: i32,
        cap_slots: i64,
        cap_bytes: i64,
        optimizer: Optimizer as i32,
        decay: Decay as i32,
        lr: f64,
        lr_min: f64,
        /// The learning rate grows linearly from lr / warmup_steps.
        warmup_steps: i64,
        /// The step, warm-up included, at which `lr_min` is reached; it stays there.
        decay_steps: i64,
        beta1: f64,
        beta2: f64,
        epsilon: f64,
        /// 0.1, unless said otherwise; set it to 0 for plain SGD.
        weight_decay: f64,
        /// Of SGD.
        momentum: f64,
        /// Gradients are scaled down to this global norm; 0 = not.
        clip_norm: f64,
        reduction: Reduction as i32,
        non_finite: NonFinite as i32,
        /// A power of two by which the loss is multiplied before backward, and gradients are
        /// divided. 0 = off.
        loss_scale: f64,
        /// So many good steps double the scale; 0 = it never grows.
        loss_scale_growth: i64,
        seed: u64,
        /// Keeps the timeline of the last so many steps.
        trace_steps: i32,
        injection: Injection as i32,
        /// For tests: every task is held up for a random time of up to so many microseconds.
        delay_us_max: i64,
    }

    /// The first block of each stage, as [`Model::partition`](crate::Model::partition) gives them;
    /// estimated, unless said otherwise.
    #[must_use]
    pub fn first_blocks(mut self, first_blocks: &[i32]) -> Self {
        self.first_blocks = first_blocks.to_vec();
        self
    }

    /// The rank of each stage, as [`Model::place`](crate::Model::place) gives them, instead of a
    /// placement.
    #[must_use]
    pub fn stage_ranks(mut self, stage_ranks: &[i32]) -> Self {
        self.stage_ranks = stage_ranks.to_vec();
        self
    }

    /// `zb-h1`, unless said otherwise.
    #[must_use]
    pub fn hint(mut self, hint: &Hint) -> Self {
        self.hint = Some(hint.clone());
        self
    }

    /// See [`PipelineOptions::watchdog`](crate::PipelineOptions::watchdog).
    #[must_use]
    pub fn watchdog(mut self, limit: Option<Duration>) -> Self {
        self.raw.0.watchdog_ms = watchdog_ms(limit);
        self
    }

    /// Gets the lines of the log, on the threads of the ranks too. A panic in it is reported by the
    /// panic hook and goes no further.
    #[must_use]
    pub fn log(mut self, f: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.log = Some(Log::new(f));
        self
    }

    /// Points into `self`: valid as long as it is. The trainer keeps the log.
    pub(crate) fn raw(&self) -> Result<(sys::rrfp_trainer_options, Option<Log>)> {
        let mut raw = self.raw.0;
        let stages = area(raw.stages.max(1), 1);
        if !self.first_blocks.is_empty() {
            check_length("first_blocks", self.first_blocks.len(), stages)?;
            raw.first_blocks = self.first_blocks.as_ptr();
        }
        if !self.stage_ranks.is_empty() {
            check_length("stage_ranks", self.stage_ranks.len(), stages)?;
            raw.stage_ranks = self.stage_ranks.as_ptr();
        }
        raw.hint = self.hint.as_ref().map_or(std::ptr::null(), Hint::raw);
        (raw.log, raw.log_user_data) = Log::raw(self.log.as_ref());
        Ok((raw, self.log.clone()))
    }
}
