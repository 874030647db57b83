// SPDX-License-Identifier: Apache-2.0
//! The C interface of rrfp as it is: what `bindgen` makes of `rrfp/rrfp.h`, `rrfp/train.h`,
//! `rrfp/multimodal.h` and `rrfp/simulate.h`. The headers are the documentation; the crate `rrfp`
//! is the interface for Rust.
//!
//! The declarations are checked in and made anew by `generate.sh`, so that a build needs neither
//! `bindgen` nor the headers. Its tests compare sizes and offsets of all structs.

#[allow(non_camel_case_types, clippy::all)]
mod bindings;

pub use bindings::*;
