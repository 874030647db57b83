// SPDX-License-Identifier: Apache-2.0
use crate::ffi::{self, check_length, pointer_or_null, set_flag, sys};
use crate::{Result, Tensor};

/// The data of a step, read in place: a row of tensors for each microbatch, one for each input of
/// the model, in the order of adding. Extents may be 0, as for a microbatch without pictures.
#[derive(Clone, Debug, Default)]
pub struct Batch<'a> {
    inputs: Vec<Tensor<'a>>,
    rows: Vec<usize>,
    loss_factors: Vec<f64>,
    rounds: i32,
    random_step: i64,
    keep_gradients: bool,
}

impl<'a> Batch<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    /// A batch of a language model: `microbatches` equal runs of the samples of `context` tokens in
    /// `tokens`, and of the same in `targets`.
    pub fn of_tokens(
        tokens: &'a [i32],
        targets: &'a [i32],
        context: usize,
        microbatches: usize,
    ) -> Result<Self> {
        check_length("targets", targets.len(), tokens.len())?;
        let run = context.max(1) * (tokens.len() / context.max(1) / microbatches.max(1)).max(1);
        check_length("tokens", tokens.len(), run * microbatches)?;
        let shape = [(run / context.max(1)) as i64, context as i64];
        let mut batch = Self::new();
        for (tokens, targets) in tokens.chunks(run).zip(targets.chunks(run)) {
            batch.push(&[
                Tensor::from_slice(tokens, &shape)?,
                Tensor::from_slice(targets, &shape)?,
            ]);
        }
        Ok(batch)
    }

    /// What the library has filled in: rows of `row` tensors. The caller vouches that their memory
    /// stays as it is for `'a`.
    ///
    /// # Safety
    ///
    /// `raw.inputs` is valid, as many as `raw.microbatches` says.
    pub(crate) unsafe fn from_raw(raw: &sys::rrfp_batch, row: usize) -> Self {
        let mut batch = Self::new();
        let microbatches = usize::try_from(raw.microbatches).unwrap_or(0);
        for i in 0..microbatches * row {
            // SAFETY: that is what the caller promises.
            batch
                .inputs
                .push(Tensor::from_raw(unsafe { *raw.inputs.add(i) }));
        }
        batch.rows = vec![row; microbatches];
        batch
    }

    /// Adds a microbatch.
    pub fn push(&mut self, inputs: &[Tensor<'a>]) {
        self.inputs.extend_from_slice(inputs);
        self.rows.push(inputs.len());
    }

    /// The inputs of a microbatch, which must be one of 0 .. [`len`](Self::len) - 1.
    pub fn microbatch(&self, m: usize) -> &[Tensor<'a>] {
        let first: usize = self.rows[..m].iter().sum();
        &self.inputs[first..first + self.rows[m]]
    }

    /// Gradients add up over so many pipeline runs of equal length; 0 = 1.
    #[must_use]
    pub fn rounds(mut self, rounds: i32) -> Self {
        self.rounds = rounds;
        self
    }

    /// A factor for the loss of each microbatch. Weights of the mean are not multiplied.
    #[must_use]
    pub fn loss_factors(mut self, factors: &[f64]) -> Self {
        self.loss_factors = factors.to_vec();
        self
    }

    /// Names the random numbers of the step (dropout); 0 = the trainer's count of steps, which only
    /// updates move on.
    #[must_use]
    pub fn random_step(mut self, step: i64) -> Self {
        self.random_step = step;
        self
    }

    /// Compute gradients, change nothing; see [`Trainer::read`](crate::Trainer::read).
    #[must_use]
    pub fn keep_gradients(mut self, on: bool) -> Self {
        self.keep_gradients = on;
        self
    }

    /// The number of microbatches.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Points into `self`: valid as long as it is. `inputs`: of the model.
    pub(crate) fn raw(&self, inputs: usize) -> Result<sys::rrfp_batch> {
        for (m, row) in self.rows.iter().enumerate() {
            check_length(&format!("microbatch {m}"), *row, inputs)?;
        }
        if !self.loss_factors.is_empty() {
            check_length("loss_factors", self.loss_factors.len(), self.len())?;
        }
        let mut raw = ffi::init(sys::rrfp_batch_init);
        set_flag(
            &mut raw.flags,
            sys::RRFP_BATCH_KEEP_GRADIENTS,
            self.keep_gradients,
        );
        raw.microbatches = self.len() as i32;
        raw.rounds = self.rounds;
        // A Tensor is a transparent rrfp_tensor.
        raw.inputs = pointer_or_null(&self.inputs) as *const sys::rrfp_tensor;
        raw.loss_factors = pointer_or_null(&self.loss_factors);
        raw.random_step = self.random_step;
        Ok(raw)
    }
}
