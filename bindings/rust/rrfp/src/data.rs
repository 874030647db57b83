// SPDX-License-Identifier: Apache-2.0
use std::ffi::CString;
use std::os::raw::c_char;
use std::path::Path;
use std::ptr::NonNull;

use crate::ffi::{self, area, c_enum, c_path, call, check_length, report, setters, sys, Raw};
use crate::Result;

c_enum! {
    /// What files hold.
    DataFormat {
        /// Any file; a token is a byte, the vocabulary 256.
        Bytes = RRFP_DATA_BYTES,
        /// Little-endian token ids without a header.
        U16 = RRFP_DATA_U16,
        U32 = RRFP_DATA_U32,
    }
}

c_enum! {
    /// Which windows of the data.
    Split {
        Train = RRFP_SPLIT_TRAIN,
        Validation = RRFP_SPLIT_VALIDATION,
    }
}

/// How files become samples.
#[derive(Clone, Debug)]
pub struct DataOptions {
    raw: Raw<sys::rrfp_data_options>,
}

impl DataOptions {
    /// Samples of `context` tokens.
    pub fn new(context: i32) -> Self {
        let mut raw = Raw(ffi::init(sys::rrfp_data_options_init));
        raw.0.context = context;
        Self { raw }
    }

    setters! {
        format: DataFormat as i32,
        /// Of the formats u16 and u32.
        vocabulary: i32,
        /// Of the windows, spread evenly. 0.1, unless said otherwise.
        validation_share: f64,
        /// Of the order of the training windows.
        seed: u64,
    }
}

report! {
    /// What was found in files.
    DataInfo from rrfp_data_info, rrfp_data_info_init {
        vocabulary: i32,
        tokens: i64,
        train_windows: i64,
        validation_windows: i64,
        /// Nats per token, over the whole stream.
        unigram_entropy: f64,
    }
}

/// A stream of tokens from files, cut into windows. It never changes; any thread may read it.
#[derive(Debug)]
pub struct Data {
    raw: NonNull<sys::rrfp_data>,
    info: DataInfo,
    context: i32,
}

// SAFETY: it never changes, and any thread may read samples at any time.
unsafe impl Send for Data {}
unsafe impl Sync for Data {}

impl Data {
    /// Opens files, and folders with all that is below them.
    pub fn open<P: AsRef<Path>>(paths: &[P], options: &DataOptions) -> Result<Self> {
        let paths = paths.iter().map(c_path).collect::<Result<Vec<CString>>>()?;
        let pointers: Vec<*const c_char> = paths.iter().map(|path| path.as_ptr()).collect();
        let mut raw_options = options.raw.0;
        raw_options.paths = pointers.as_ptr();
        raw_options.path_count = pointers.len() as i32;
        // SAFETY: the pointers are valid during the call.
        let raw =
            ffi::create(|out, error| unsafe { sys::rrfp_data_open(&raw_options, out, error) })?;
        // SAFETY: the same.
        let info = DataInfo::read(|out, error| unsafe {
            sys::rrfp_data_get_info(raw.as_ptr(), out, error)
        });
        match info {
            Ok(info) => Ok(Self {
                raw,
                info,
                context: raw_options.context,
            }),
            Err(error) => {
                // SAFETY: it is ours.
                unsafe { sys::rrfp_data_destroy(raw.as_ptr()) };
                Err(error)
            }
        }
    }

    pub fn info(&self) -> DataInfo {
        self.info
    }

    /// Samples `position` and following, as many as `tokens` and `targets` have room for: `context`
    /// numbers each; targets are the tokens that follow. Training samples are an endless run
    /// through the windows, every epoch in another order.
    pub fn read(
        &self,
        split: Split,
        position: u64,
        tokens: &mut [i32],
        targets: &mut [i32],
    ) -> Result<()> {
        let samples = i32::try_from(tokens.len() / area(self.context, 1)).unwrap_or(i32::MAX);
        let length = area(samples, self.context);
        check_length("tokens", tokens.len(), length)?;
        check_length("targets", targets.len(), length)?;
        // SAFETY: both have room for the samples.
        call(|error| unsafe {
            let (data, split) = (self.raw.as_ptr(), split as i32);
            let (tokens, targets) = (tokens.as_mut_ptr(), targets.as_mut_ptr());
            sys::rrfp_data_read(data, split, position, samples, tokens, targets, error)
        })?;
        Ok(())
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nothing else points to it.
        unsafe { sys::rrfp_data_destroy(self.raw.as_ptr()) }
    }
}
