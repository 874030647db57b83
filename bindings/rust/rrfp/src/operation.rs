// SPDX-License-Identifier: Apache-2.0
use crate::ffi::{self, pointer_or_null, set_flag, setters, sys, Raw};
use crate::{Parameter, Value};

/// An operation of a [`Model`](crate::Model). "Rows" are all axes but the last; d is the last
/// extent.
#[derive(Clone, Debug)]
pub struct Operation {
    raw: Raw<sys::rrfp_operation>,
    inputs: Vec<i32>,
    parameters: Vec<i32>,
    shape: Vec<i64>,
}

impl Operation {
    fn new(op: i32, inputs: &[Value], parameters: &[Parameter]) -> Self {
        let mut raw = Raw(ffi::init(sys::rrfp_operation_init));
        raw.0.op = op;
        Self {
            raw,
            inputs: inputs.iter().map(|value| value.0).collect(),
            parameters: parameters.iter().map(|parameter| parameter.0).collect(),
            shape: Vec::new(),
        }
    }

    /// x `[.., in]` to `[.., out]`, with W `[out, in]` and b `[out]`.
    pub fn linear(x: Value, weight: Parameter, bias: Option<Parameter>) -> Self {
        let parameters: Vec<_> = Some(weight).into_iter().chain(bias).collect();
        Self::new(sys::RRFP_OP_LINEAR, &[x], &parameters)
    }

    /// i32 ids `[..]` to `[.., d]`, with a table `[vocabulary, d]`.
    pub fn embedding(ids: Value, table: Parameter) -> Self {
        Self::new(sys::RRFP_OP_EMBEDDING, &[ids], &[table])
    }

    /// x `[.., T, d]` plus the first T rows of a table `[at least T, d]`.
    pub fn positions(x: Value, table: Parameter) -> Self {
        Self::new(sys::RRFP_OP_POSITIONS, &[x], &[table])
    }

    /// x `[.., T, d]`: turns the first `heads` heads of `head_dim`; see [`base`](Self::base) and
    /// [`given_positions`](Self::given_positions).
    pub fn rotary(x: Value, heads: i32, head_dim: i32) -> Self {
        let mut operation = Self::new(sys::RRFP_OP_ROTARY, &[x], &[]);
        operation.raw.0.heads = heads;
        operation.raw.0.head_dim = head_dim;
        operation
    }

    /// With gamma `[d]` and beta `[d]`; see [`epsilon`](Self::epsilon).
    pub fn layer_norm(x: Value, gamma: Parameter, beta: Option<Parameter>) -> Self {
        let parameters: Vec<_> = Some(gamma).into_iter().chain(beta).collect();
        Self::new(sys::RRFP_OP_LAYER_NORM, &[x], &parameters)
    }

    /// With gamma `[d]`; see [`epsilon`](Self::epsilon).
    pub fn rms_norm(x: Value, gamma: Parameter) -> Self {
        Self::new(sys::RRFP_OP_RMS_NORM, &[x], &[gamma])
    }

    /// The tanh form.
    pub fn gelu(x: Value) -> Self {
        Self::new(sys::RRFP_OP_GELU, &[x], &[])
    }

    /// x sigmoid(x).
    pub fn silu(x: Value) -> Self {
        Self::new(sys::RRFP_OP_SILU, &[x], &[])
    }

    /// silu(gate) up.
    pub fn swiglu(gate: Value, up: Value) -> Self {
        Self::new(sys::RRFP_OP_SWIGLU, &[gate, up], &[])
    }

    /// q `[B, T, heads * head_dim]`, k and v `[B, S, kv_heads * head_dim]` to
    /// `[B, T, heads * head_dim]`: softmax(q k^T / sqrt(head_dim)) v for each head. See
    /// [`kv_heads`](Self::kv_heads), [`causal`](Self::causal) and [`segments`](Self::segments).
    pub fn attention(q: Value, k: Value, v: Value, heads: i32) -> Self {
        let mut operation = Self::new(sys::RRFP_OP_ATTENTION, &[q, k, v], &[]);
        operation.raw.0.heads = heads;
        operation
    }

    /// The same with all three side by side, `[B, T, (heads + 2 kv_heads) * head_dim]`.
    pub fn attention_fused(qkv: Value, heads: i32) -> Self {
        let mut operation = Self::new(sys::RRFP_OP_ATTENTION, &[qkv], &[]);
        operation.raw.0.heads = heads;
        operation
    }

    /// Elements become 0 with this probability, in training steps only.
    pub fn dropout(x: Value, probability: f64) -> Self {
        let mut operation = Self::new(sys::RRFP_OP_DROPOUT, &[x], &[]);
        operation.raw.0.probability = probability;
        operation
    }

    /// a + b, same shapes.
    pub fn add(a: Value, b: Value) -> Self {
        Self::new(sys::RRFP_OP_ADD, &[a, b], &[])
    }

    /// a b, same shapes.
    pub fn mul(a: Value, b: Value) -> Self {
        Self::new(sys::RRFP_OP_MUL, &[a, b], &[])
    }

    /// 1 to 16 inputs along `axis`; negative = from the end.
    pub fn concat(inputs: &[Value], axis: i32) -> Self {
        let mut operation = Self::new(sys::RRFP_OP_CONCAT, inputs, &[]);
        operation.raw.0.axis = axis;
        operation
    }

    /// To `shape`: 0 = the extent at that place, one -1 = what is left.
    pub fn reshape(x: Value, shape: &[i64]) -> Self {
        let mut operation = Self::new(sys::RRFP_OP_RESHAPE, &[x], &[]);
        operation.shape = shape.to_vec();
        operation
    }

    /// Over `axis`, which goes away; negative = from the end.
    pub fn mean(x: Value, axis: i32) -> Self {
        let mut operation = Self::new(sys::RRFP_OP_MEAN, &[x], &[]);
        operation.raw.0.axis = axis;
        operation
    }

    /// Logits `[.., classes]` and i32 targets `[..]` to `[..]`; see
    /// [`ignore_index`](Self::ignore_index).
    pub fn cross_entropy(logits: Value, targets: Value) -> Self {
        Self::new(sys::RRFP_OP_CROSS_ENTROPY, &[logits, targets], &[])
    }

    /// (a - b)^2, same shapes.
    pub fn squared_error(a: Value, b: Value) -> Self {
        Self::new(sys::RRFP_OP_SQUARED_ERROR, &[a, b], &[])
    }

    /// Pictures `[N, H, W, C]` to `[N, H', W', kernel * kernel * C]`: the squares of `kernel` pixels
    /// a side, `stride` apart, with `padding` pixels of 0 around the picture; H' = (H + 2 padding -
    /// kernel) / stride + 1. A linear layer behind it makes it a convolution.
    pub fn patches(pictures: Value, kernel: i32, stride: i32, padding: i32) -> Self {
        let mut operation = Self::new(sys::RRFP_OP_PATCHES, &[pictures], &[]);
        operation.raw.0.kernel = kernel;
        operation.raw.0.stride = stride;
        operation.raw.0.padding = padding;
        operation
    }

    /// x `[.., d]`, rows `[.., d]` and i32 sources of x's rows to the shape of x: row r is row
    /// `sources[r]` of `rows`, or that of x where `sources[r]` is -1.
    pub fn merge_rows(x: Value, rows: Value, sources: Value) -> Self {
        Self::new(sys::RRFP_OP_MERGE_ROWS, &[x, rows, sources], &[])
    }

    /// Rotary: by i32 positions `[.., T]`, not by 0 .. T - 1.
    #[must_use]
    pub fn given_positions(mut self, positions: Value) -> Self {
        self.inputs.push(positions.0);
        self
    }

    /// Attention: i32 segments `[B, T]`, which pack several samples into a sequence (S = T). A
    /// position sees those of its own segment only, which is a run of equal numbers.
    #[must_use]
    pub fn segments(mut self, segments: Value) -> Self {
        self.inputs.push(segments.0);
        self
    }

    /// Attention: position t sees 0 .. t only (S = T).
    #[must_use]
    pub fn causal(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.0.flags, sys::RRFP_OP_CAUSAL, on);
        self
    }

    setters! {
        /// Attention: query head h reads key and value head h / (heads / kv_heads). 0 = heads.
        kv_heads: i32,
        /// Cross-entropy: the target that does not count. -100, unless said otherwise.
        ignore_index: i32,
        /// Norms. 1e-5, unless said otherwise.
        epsilon: f64,
        /// Rotary. 10000, unless said otherwise.
        base: f64,
    }

    /// Points into `self`: valid as long as it is.
    pub(crate) fn raw(&self) -> sys::rrfp_operation {
        let mut raw = self.raw.0;
        raw.inputs = pointer_or_null(&self.inputs);
        raw.input_count = self.inputs.len() as i32;
        raw.parameters = pointer_or_null(&self.parameters);
        raw.parameter_count = self.parameters.len() as i32;
        raw.shape = pointer_or_null(&self.shape);
        raw.ndim = self.shape.len() as i32;
        raw
    }
}
