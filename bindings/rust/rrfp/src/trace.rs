// SPDX-License-Identifier: Apache-2.0
//! Timelines that pipelines, trainers, simulations and hints have written as trace event files.

use std::path::Path;

use crate::ffi::{self, c_enum, c_path, call, sys};
use crate::Result;

c_enum! {
    /// What a timeline is drawn as.
    Picture {
        /// A page that needs nothing else: zoom, hover, totals.
        Html = RRFP_PICTURE_HTML,
        Svg = RRFP_PICTURE_SVG,
    }
}

/// Draws a timeline. The file appears under its name once it is complete.
pub fn draw(trace: impl AsRef<Path>, picture: Picture, out: impl AsRef<Path>) -> Result<()> {
    let (trace, out) = (c_path(trace)?, c_path(out)?);
    // SAFETY: the pointers are valid during the call.
    call(|error| unsafe {
        sys::rrfp_trace_draw(trace.as_ptr(), picture as i32, out.as_ptr(), error)
    })?;
    Ok(())
}

/// How the time of each rank went, as a JSON object; `rrfp/simulate.h` lists its fields.
pub fn summarize(trace: impl AsRef<Path>) -> Result<String> {
    let trace = c_path(trace)?;
    // SAFETY: the pointers are valid during the call.
    ffi::text(|buffer, capacity, size, error| unsafe {
        sys::rrfp_trace_summarize(trace.as_ptr(), buffer, capacity, size, error)
    })
}
