// SPDX-License-Identifier: Apache-2.0
use std::path::Path;
use std::ptr::NonNull;

use crate::ffi::{self, c_path, c_string, call, check_length, report, set_flag, setters, sys, Raw};
use crate::{DType, Operation, Result, Tensor};

/// A value of a model: an input, or the output of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Value(pub i32);

/// A parameter of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Parameter(pub i32);

/// What a parameter is before training. Random numbers are a function of the trainer's seed and the
/// parameter's name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Every element is this.
    Constant(f64),
    Normal {
        mean: f64,
        deviation: f64,
    },
    /// In `middle - reach .. middle + reach`.
    Uniform {
        middle: f64,
        reach: f64,
    },
}

/// How a parameter is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Training {
    /// Is not trained.
    pub frozen: bool,
    /// No weight decay.
    pub no_decay: bool,
}

/// The options of a decoder-only language model (Radford et al. 2019).
#[derive(Clone, Debug)]
pub struct GptOptions {
    raw: Raw<sys::rrfp_gpt_options>,
}

impl Default for GptOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl GptOptions {
    pub fn new() -> Self {
        Self {
            raw: Raw(ffi::init(sys::rrfp_gpt_options_init)),
        }
    }

    /// The embedding is also the output layer.
    #[must_use]
    pub fn tied(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_GPT_TIED, on);
        self
    }

    /// Rotary instead of learned positions.
    #[must_use]
    pub fn rotary(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_GPT_ROTARY, on);
        self
    }

    /// Instead of layer norm.
    #[must_use]
    pub fn rms_norm(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_GPT_RMS_NORM, on);
        self
    }

    /// Instead of GELU.
    #[must_use]
    pub fn swiglu(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_GPT_SWIGLU, on);
        self
    }

    setters! {
        vocabulary: i32,
        /// The longest sequence.
        context: i32,
        layers: i32,
        dim: i32,
        heads: i32,
        /// 0 = heads.
        kv_heads: i32,
        /// Of the feed-forward layers; 0 = 4 dim, with SwiGLU 8/3 dim rounded up to 8.
        hidden: i32,
        dropout: f64,
    }
}

/// The options of a vision transformer (Dosovitskiy et al. 2021).
#[derive(Clone, Debug)]
pub struct VisionOptions {
    raw: Raw<sys::rrfp_vision_options>,
}

impl Default for VisionOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl VisionOptions {
    pub fn new() -> Self {
        Self {
            raw: Raw(ffi::init(sys::rrfp_vision_options_init)),
        }
    }

    /// The encoder is not trained; the projector is.
    #[must_use]
    pub fn frozen(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_VISION_FROZEN, on);
        self
    }

    /// Convolutions instead of one linear layer make the patches.
    #[must_use]
    pub fn conv_stem(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_VISION_CONV_STEM, on);
        self
    }

    setters! {
        /// Pixels a side; pictures are square and have 3 channels.
        image_size: i32,
        /// Pixels a side; divides `image_size`. With `conv_stem` a power of two, at least 4.
        patch: i32,
        layers: i32,
        dim: i32,
        heads: i32,
        /// Of the feed-forward layers; 0 = 4 dim.
        hidden: i32,
    }
}

report! {
    /// How large a model is.
    ModelInfo from rrfp_model_info, rrfp_model_info_init {
        inputs: i32,
        values: i32,
        parameters: i32,
        blocks: i32,
        losses: i32,
        parameter_elements: i64,
        trainable_elements: i64,
    }
}

/// Inputs, parameters and operations, grouped in blocks: a language model, or a graph of your own.
///
/// ```
/// # fn main() -> rrfp::Result<()> {
/// use rrfp::{DType, Init, Model, Operation, Training};
/// let mut model = Model::new()?;
/// let x = model.add_input("x", DType::F32, &[-1, 3])?;
/// let y = model.add_input("y", DType::F32, &[-1, 1])?;
/// let init = Init::Normal { mean: 0.0, deviation: 0.1 };
/// let w = model.add_parameter("w", &[1, 3], init, Training::default())?;
/// model.begin_block(Some("regression"), false)?;
/// let prediction = model.add(&Operation::linear(x, w, None))?;
/// let losses = model.add(&Operation::squared_error(prediction, y))?;
/// model.set_output(prediction)?;
/// model.set_loss(losses)?;
/// assert_eq!(model.value_shape(losses)?, [-1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Model {
    raw: NonNull<sys::rrfp_model>,
}

// SAFETY: a handle is bound to no thread. Not Sync: one thread at a time may use it.
unsafe impl Send for Model {}

impl Model {
    /// An empty model.
    pub fn new() -> Result<Self> {
        // SAFETY (here and below): the pointers are valid during the call.
        let raw = ffi::create(|out, error| unsafe { sys::rrfp_model_create(out, error) })?;
        Ok(Self { raw })
    }

    /// A language model: inputs `tokens` and `targets`, both i32 `[B, T]`; blocks: embedding, one
    /// per layer, head.
    pub fn gpt(options: &GptOptions) -> Result<Self> {
        let raw = ffi::create(|out, error| unsafe {
            sys::rrfp_model_create_gpt(&options.raw.0, out, error)
        })?;
        Ok(Self { raw })
    }

    /// A language model that reads pictures: an encoder makes (image_size / patch)^2 rows of each
    /// picture, a projector turns them into rows of the language model's width, and these take the
    /// places of marked tokens. Several samples may lie in one sequence, side by side.
    ///
    /// Inputs, all i32 `[B, T]` but the last one; [`Samples::read`](crate::Samples::read) makes
    /// them:
    ///
    /// - `tokens`: ids below the vocabulary
    /// - `targets`: the next token, or -100 where there is nothing to predict
    /// - `segments`: the sample of each position, a run of equal numbers
    /// - `positions`: of each position in its sample, 0 .. context - 1
    /// - `sources`: -1, or the row that takes this place: k (image_size / patch)^2 + p for patch p
    ///   of picture k of the microbatch
    /// - `images`: f32 `[N, image_size, image_size, 3]`, N >= 0
    ///
    /// Blocks: `vision.embedding`, `vision.layers.<i>`, `projector`, `embedding`, `layers.<i>`,
    /// `head`. See [`place`](Self::place) for the stages of such a model.
    pub fn vision_language(language: &GptOptions, vision: &VisionOptions) -> Result<Self> {
        let raw = ffi::create(|out, error| unsafe {
            sys::rrfp_model_create_vision_language(&language.raw.0, &vision.raw.0, out, error)
        })?;
        Ok(Self { raw })
    }

    /// The built-in model that a checkpoint was made from.
    pub fn from_checkpoint(path: impl AsRef<Path>) -> Result<Self> {
        let path = c_path(path)?;
        let raw = ffi::create(|out, error| unsafe {
            sys::rrfp_model_create_from_checkpoint(path.as_ptr(), out, error)
        })?;
        Ok(Self { raw })
    }

    /// Begins the next block; operations belong to the block that was begun last. Stages are runs
    /// of whole blocks. With `recompute` only what enters the block is kept for backward.
    pub fn begin_block(&mut self, name: Option<&str>, recompute: bool) -> Result<i32> {
        let name = name
            .map(|name| c_string(name, "the name of a block"))
            .transpose()?;
        let mut flags = 0;
        set_flag(&mut flags, sys::RRFP_BLOCK_RECOMPUTE, recompute);
        let mut block = 0;
        call(|error| unsafe {
            let name = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
            sys::rrfp_model_begin_block(self.raw.as_ptr(), name, flags, &mut block, error)
        })?;
        Ok(block)
    }

    /// Adds an input, f32 or i32, which every microbatch gives anew. An extent of -1 may differ
    /// between microbatches, and may be 0: a microbatch without pictures has `[0, ..]` of them.
    pub fn add_input(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Result<Value> {
        let name = c_string(name, "the name of an input")?;
        let mut value = 0;
        call(|error| unsafe {
            let (model, dtype, ndim) = (self.raw.as_ptr(), dtype.raw(), shape.len() as i32);
            let shape = shape.as_ptr();
            sys::rrfp_model_add_input(model, name.as_ptr(), dtype, ndim, shape, &mut value, error)
        })?;
        Ok(Value(value))
    }

    /// Adds an f32 parameter. Its name is unique in the model and is its name in checkpoints.
    pub fn add_parameter(
        &mut self,
        name: &str,
        shape: &[i64],
        init: Init,
        training: Training,
    ) -> Result<Parameter> {
        let name = c_string(name, "the name of a parameter")?;
        let mut raw = ffi::init(sys::rrfp_parameter_options_init);
        set_flag(&mut raw.flags, sys::RRFP_PARAMETER_FROZEN, training.frozen);
        set_flag(
            &mut raw.flags,
            sys::RRFP_PARAMETER_NO_DECAY,
            training.no_decay,
        );
        raw.name = name.as_ptr();
        raw.shape = shape.as_ptr();
        raw.ndim = shape.len() as i32;
        (raw.init, raw.init_value, raw.init_scale) = match init {
            Init::Constant(value) => (sys::RRFP_INIT_CONSTANT, value, 0.0),
            Init::Normal { mean, deviation } => (sys::RRFP_INIT_NORMAL, mean, deviation),
            Init::Uniform { middle, reach } => (sys::RRFP_INIT_UNIFORM, middle, reach),
        };
        let mut parameter = 0;
        call(|error| unsafe {
            sys::rrfp_model_add_parameter(self.raw.as_ptr(), &raw, &mut parameter, error)
        })?;
        Ok(Parameter(parameter))
    }

    /// Adds an operation to the current block and gives the value that it makes. Shapes are checked
    /// as far as they are known.
    pub fn add(&mut self, operation: &Operation) -> Result<Value> {
        let raw = operation.raw();
        let mut value = 0;
        call(|error| unsafe {
            sys::rrfp_model_add_operation(self.raw.as_ptr(), &raw, &mut value, error)
        })?;
        Ok(Value(value))
    }

    /// The f32 value whose elements are the losses; the loss of a microbatch is their sum.
    pub fn set_loss(&mut self, value: Value) -> Result<()> {
        call(|error| unsafe { sys::rrfp_model_set_loss(self.raw.as_ptr(), value.0, error) })?;
        Ok(())
    }

    /// One more loss, such as that of a second head, after [`set_loss`](Self::set_loss). Each is
    /// reduced by itself, multiplied by its factor (finite; 1 for the first), and added up; one that
    /// counts nothing in a batch adds 0. No operation may read a loss. See
    /// [`Trainer::losses`](crate::Trainer::losses).
    pub fn add_loss(&mut self, value: Value, factor: f64) -> Result<()> {
        call(|error| unsafe {
            sys::rrfp_model_add_loss(self.raw.as_ptr(), value.0, factor, error)
        })?;
        Ok(())
    }

    /// The value that predictions are read from, such as logits `[B, T, vocabulary]`.
    pub fn set_output(&mut self, value: Value) -> Result<()> {
        call(|error| unsafe { sys::rrfp_model_set_output(self.raw.as_ptr(), value.0, error) })?;
        Ok(())
    }

    pub fn info(&self) -> Result<ModelInfo> {
        ModelInfo::read(|out, error| unsafe { sys::rrfp_model_get_info(self.raw(), out, error) })
    }

    /// The shape of a value, -1 where extents vary.
    pub fn value_shape(&self, value: Value) -> Result<Vec<i64>> {
        read_shape(|ndim, shape, error| unsafe {
            sys::rrfp_model_value_shape(self.raw(), value.0, ndim, shape, error)
        })
    }

    pub fn parameter_name(&self, parameter: Parameter) -> Result<String> {
        ffi::text(|buffer, capacity, size, error| unsafe {
            let model = self.raw();
            sys::rrfp_model_parameter_name(model, parameter.0, buffer, capacity, size, error)
        })
    }

    pub fn parameter_shape(&self, parameter: Parameter) -> Result<Vec<i64>> {
        read_shape(|ndim, shape, error| unsafe {
            sys::rrfp_model_parameter_shape(self.raw(), parameter.0, ndim, shape, error)
        })
    }

    /// The model and its options as a JSON object, for people and logs.
    pub fn describe(&self) -> Result<String> {
        ffi::text(|buffer, capacity, size, error| unsafe {
            sys::rrfp_model_describe(self.raw(), buffer, capacity, size, error)
        })
    }

    /// Measures the blocks on the calling thread: forward and backward of each, in nanoseconds,
    /// with one tensor for each input of the model.
    pub fn measure(&self, inputs: &[Tensor<'_>]) -> Result<Vec<i64>> {
        let info = self.info()?;
        check_length("inputs", inputs.len(), info.inputs as usize)?;
        let mut block_ns = vec![0; info.blocks as usize];
        // A Tensor is a transparent rrfp_tensor.
        call(|error| unsafe {
            let inputs = inputs.as_ptr() as *const sys::rrfp_tensor;
            sys::rrfp_model_measure(self.raw(), inputs, block_ns.as_mut_ptr(), error)
        })?;
        Ok(block_ns)
    }

    /// Cuts the blocks into `stages` runs so that the most expensive run is as cheap as possible,
    /// and gives the first block of each. Costs, one per block, in any unit; `None` = estimated.
    pub fn partition(&self, stages: i32, block_costs: Option<&[i64]>) -> Result<Vec<i32>> {
        self.check_costs(block_costs)?;
        let mut first_blocks = vec![0; usize::try_from(stages).unwrap_or(0)];
        call(|error| unsafe {
            let costs = block_costs.map_or(std::ptr::null(), <[i64]>::as_ptr);
            let out = first_blocks.as_mut_ptr();
            sys::rrfp_model_partition(self.raw(), stages, costs, out, error)
        })?;
        Ok(first_blocks)
    }

    /// The same for a model with branches, such as encoders and a text embedding that feed one
    /// language model: no stage has blocks of two branches, and stages go to ranks by longest
    /// processing time first (Graham 1969): the busiest rank has at most 4/3 of the least that it
    /// could have. A branch is a run of blocks of which each reads the one before it; a block at
    /// which branches meet for the first time begins a new one.
    ///
    /// Gives the first block and the rank of each stage, for
    /// [`TrainerOptions::first_blocks`](crate::TrainerOptions::first_blocks) and
    /// [`TrainerOptions::stage_ranks`](crate::TrainerOptions::stage_ranks); every rank has 1 or more
    /// stages. Fails with [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) unless branches <=
    /// stages <= blocks and 1 <= ranks <= stages.
    pub fn place(
        &self,
        stages: i32,
        ranks: i32,
        block_costs: Option<&[i64]>,
    ) -> Result<(Vec<i32>, Vec<i32>)> {
        self.check_costs(block_costs)?;
        let mut first_blocks = vec![0; usize::try_from(stages).unwrap_or(0)];
        let mut stage_ranks = first_blocks.clone();
        call(|error| unsafe {
            let costs = block_costs.map_or(std::ptr::null(), <[i64]>::as_ptr);
            let (blocks, on_ranks) = (first_blocks.as_mut_ptr(), stage_ranks.as_mut_ptr());
            sys::rrfp_model_place(self.raw(), stages, ranks, costs, blocks, on_ranks, error)
        })?;
        Ok((first_blocks, stage_ranks))
    }

    fn check_costs(&self, block_costs: Option<&[i64]>) -> Result<()> {
        if let Some(costs) = block_costs {
            check_length("block_costs", costs.len(), self.info()?.blocks as usize)?;
        }
        Ok(())
    }

    pub(crate) fn raw(&self) -> *const sys::rrfp_model {
        self.raw.as_ptr()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nothing else points to it.
        unsafe { sys::rrfp_model_destroy(self.raw.as_ptr()) }
    }
}

fn read_shape(f: impl FnOnce(*mut i32, *mut i64, *mut sys::rrfp_error) -> i32) -> Result<Vec<i64>> {
    let mut shape = vec![0; sys::RRFP_DIMS_MAX as usize];
    let mut ndim = 0;
    call(|error| f(&mut ndim, shape.as_mut_ptr(), error))?;
    shape.truncate(ndim as usize);
    Ok(shape)
}
