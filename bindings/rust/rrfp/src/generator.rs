// SPDX-License-Identifier: Apache-2.0
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::ffi::{self, call, check_length, setters, sys, Raw};
use crate::{Result, Tensor, Trainer};

/// How the next token is drawn.
#[derive(Clone, Debug)]
pub struct Sampling {
    raw: Raw<sys::rrfp_sampling>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self::new()
    }
}

impl Sampling {
    pub fn new() -> Self {
        Self {
            raw: Raw(ffi::init(sys::rrfp_sampling_init)),
        }
    }

    setters! {
        /// Only the k most likely tokens; 0 = all.
        top_k: i32,
        /// 1, unless said otherwise; 0 = always the most likely token.
        temperature: f64,
        /// Only the most likely tokens that together have this probability.
        top_p: f64,
        /// A draw is a function of this and of how many came before it since the start.
        seed: u64,
    }
}

/// Continues a sequence with a trainer's weights, keeping keys and values of what it has seen.
/// While it lives the trainer cannot be trained.
#[derive(Debug)]
pub struct Generator<'t> {
    raw: NonNull<sys::rrfp_generator>,
    trainer: PhantomData<&'t Trainer>,
}

impl<'t> Generator<'t> {
    /// `context`: the longest sequence that is attended to; beyond it the older half is forgotten.
    pub fn new(trainer: &'t Trainer, context: i32) -> Result<Self> {
        // SAFETY (here and below): the handles are ours, the pointers are valid during the call.
        let raw = ffi::create(|out, error| unsafe {
            sys::rrfp_generator_create(trainer.raw(), context, out, error)
        })?;
        Ok(Self {
            raw,
            trainer: PhantomData,
        })
    }

    /// Forgets everything and reads a prompt of 1 or more tokens; of one longer than the context
    /// the end counts.
    pub fn start(&mut self, tokens: &[i32]) -> Result<()> {
        call(|error| unsafe {
            sys::rrfp_generator_start(self.raw.as_ptr(), tokens.as_ptr(), tokens.len(), error)
        })?;
        Ok(())
    }

    /// Forgets everything and reads the inputs of one sequence, pictures too (a vision-language
    /// model): a [`microbatch`](crate::Batch::microbatch) as [`Samples::read`](crate::Samples::read)
    /// gives it, B = 1, T at most the context. Targets are not looked at and may be empty, `[1, 0]`.
    /// [`draw`](Self::draw) then goes on with text, in the last segment; there a picture cannot be
    /// forgotten, so it fails with [`ErrorKind::BadState`](crate::ErrorKind::BadState) once the
    /// context is full. After an error the generator is as it was.
    pub fn start_inputs(&mut self, inputs: &[Tensor<'_>]) -> Result<()> {
        check_length("inputs", inputs.len(), sys::RRFP_SAMPLES_INPUTS as usize)?;
        // A Tensor is a transparent rrfp_tensor.
        call(|error| unsafe {
            let inputs = inputs.as_ptr() as *const sys::rrfp_tensor;
            sys::rrfp_generator_start_inputs(self.raw.as_ptr(), inputs, error)
        })?;
        Ok(())
    }

    /// Draws the next token and reads it.
    pub fn draw(&mut self, sampling: &Sampling) -> Result<i32> {
        let mut token = 0;
        call(|error| unsafe {
            sys::rrfp_generator_next(self.raw.as_ptr(), &sampling.raw.0, &mut token, error)
        })?;
        Ok(token)
    }

    /// The logits for the next token; there is one for each token of the vocabulary.
    pub fn logits(&mut self, logits: &mut [f32]) -> Result<()> {
        call(|error| unsafe {
            let (data, count) = (logits.as_mut_ptr(), logits.len());
            sys::rrfp_generator_logits(self.raw.as_ptr(), data, count, error)
        })?;
        Ok(())
    }
}

impl Drop for Generator<'_> {
    fn drop(&mut self) {
        // SAFETY: it is ours, and its trainer still lives.
        unsafe { sys::rrfp_generator_destroy(self.raw.as_ptr()) }
    }
}
