// SPDX-License-Identifier: Apache-2.0
use std::path::Path;
use std::ptr::NonNull;

use crate::ffi::{self, c_enum, c_path, call, check_length, report, setters, sys, Raw};
use crate::{Batch, Result, Split};

/// Where the rows of a picture go.
pub const TOKEN_IMAGE: i32 = sys::RRFP_TOKEN_IMAGE;
/// Ends each sample.
pub const TOKEN_END: i32 = sys::RRFP_TOKEN_END;
/// The bytes and these.
pub const SAMPLES_VOCABULARY: i32 = sys::RRFP_SAMPLES_VOCABULARY;

c_enum! {
    /// How samples are grouped into microbatches. A function of the data alone.
    Grouping {
        /// In their order, numbers that differ by at most one.
        Count = RRFP_GROUPING_COUNT,
        /// So that microbatches cost alike: longest processing time first.
        Cost = RRFP_GROUPING_COST,
    }
}

/// How a manifest becomes samples.
#[derive(Clone, Debug)]
pub struct SamplesOptions {
    raw: Raw<sys::rrfp_samples_options>,
}

impl SamplesOptions {
    /// Pictures of `image_size` pixels a side, of which the model makes `image_tokens` rows;
    /// samples of at most `context` tokens.
    pub fn new(image_size: i32, image_tokens: i32, context: i32) -> Self {
        let mut raw = Raw(ffi::init(sys::rrfp_samples_options_init));
        raw.0.image_size = image_size;
        raw.0.image_tokens = image_tokens;
        raw.0.context = context;
        Self { raw }
    }

    setters! {
        grouping: Grouping as i32,
        /// Samples that may be decoded ahead of use; 0 = 64.
        ahead: i32,
        /// Of the samples, spread evenly. 0.1, unless said otherwise.
        validation_share: f64,
        /// Of a picture in the encoder, in tokens of text; 0 = `image_tokens`.
        image_cost: f64,
        /// Of the order of the training samples.
        seed: u64,
        /// Of a picture in its file. 2^24, unless said otherwise.
        pixels_max: i64,
    }
}

report! {
    /// What was found in a manifest.
    SamplesInfo from rrfp_samples_info, rrfp_samples_info_init {
        train_samples: i64,
        validation_samples: i64,
        /// Of both.
        images: i64,
        /// Of one sample.
        images_max: i64,
        /// Of both, those of pictures and ends counted.
        tokens: i64,
    }
}

/// The samples of a manifest, a file of JSON lines, each an object with
///
/// - `"text"`: more than spaces and marks: every picture is marked by `<image>`
/// - `"images"`, optional: paths of PNG files, relative to the manifest's folder, one for each mark
///
/// A token of text is a byte, a picture is `image_tokens` tokens, and each sample ends with an end
/// token. Pictures are decoded ahead of their use on a thread that this owns.
///
/// What is read lies in memory of the samples until the next read, so a [`Batch`] borrows them, and
/// the compiler sees to it that it is gone by then:
///
/// ```compile_fail,E0499
/// # use rrfp::{Samples, SamplesOptions, Split};
/// # fn main() -> rrfp::Result<()> {
/// let mut samples = Samples::open("samples.jsonl", &SamplesOptions::new(32, 16, 256))?;
/// let first = samples.read(Split::Train, 0, 8, 4)?;
/// let second = samples.read(Split::Train, 8, 8, 4)?; // cannot be borrowed more than once
/// println!("{}", first.len());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Samples {
    raw: NonNull<sys::rrfp_samples>,
}

// SAFETY: it is bound to no thread. Not Sync: one thread at a time may use it.
unsafe impl Send for Samples {}

impl Samples {
    /// Reads the manifest and the headers of all its pictures.
    ///
    /// Errors name the file and the line ([`ErrorKind::Io`](crate::ErrorKind::Io),
    /// [`ErrorKind::BadData`](crate::ErrorKind::BadData)): one that is no JSON object, empty text,
    /// marks and pictures that differ in number, a sample longer than the context, a picture that is
    /// missing, is no PNG file or has too many pixels.
    pub fn open(path: impl AsRef<Path>, options: &SamplesOptions) -> Result<Self> {
        let path = c_path(path)?;
        let mut raw_options = options.raw.0;
        raw_options.path = path.as_ptr();
        // SAFETY (here and below): the handle is ours, the pointers are valid during the call.
        let raw =
            ffi::create(|out, error| unsafe { sys::rrfp_samples_open(&raw_options, out, error) })?;
        Ok(Self { raw })
    }

    pub fn info(&self) -> Result<SamplesInfo> {
        SamplesInfo::read(|out, error| unsafe {
            sys::rrfp_samples_get_info(self.raw.as_ptr(), out, error)
        })
    }

    /// Samples `position .. position + count` in `microbatches` (1 .. `count`) packed sequences,
    /// the inputs of [`Model::vision_language`](crate::Model::vision_language) with B = 1. Training
    /// samples are an endless run through the manifest, every epoch in another order; validation
    /// sample p is that at p modulo their number. Both are a function of the position alone. Targets
    /// are -100 before the rows of pictures and behind the ends of samples.
    ///
    /// Waits until the pictures are decoded; fails if one cannot be.
    pub fn read(
        &mut self,
        split: Split,
        position: u64,
        count: i32,
        microbatches: i32,
    ) -> Result<Batch<'_>> {
        let mut raw = ffi::init(sys::rrfp_batch_init);
        call(|error| unsafe {
            let (samples, split) = (self.raw.as_ptr(), split as i32);
            sys::rrfp_samples_read(
                samples,
                split,
                position,
                count,
                microbatches,
                &mut raw,
                error,
            )
        })?;
        // SAFETY: the library has filled it in, and the memory stays until the next call that
        // borrows `self` mutably, or drops it.
        Ok(unsafe { Batch::from_raw(&raw, sys::RRFP_SAMPLES_INPUTS as usize) })
    }

    /// The same for samples from anywhere; nothing is decoded ahead.
    pub fn read_at(
        &mut self,
        split: Split,
        positions: &[u64],
        microbatches: i32,
    ) -> Result<Batch<'_>> {
        let mut raw = ffi::init(sys::rrfp_batch_init);
        let count = i32::try_from(positions.len()).unwrap_or(i32::MAX);
        call(|error| unsafe {
            let (samples, split) = (self.raw.as_ptr(), split as i32);
            let positions = positions.as_ptr();
            sys::rrfp_samples_read_at(
                samples,
                split,
                positions,
                count,
                microbatches,
                &mut raw,
                error,
            )
        })?;
        // SAFETY: as for read.
        Ok(unsafe { Batch::from_raw(&raw, sys::RRFP_SAMPLES_INPUTS as usize) })
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nothing else points to it.
        unsafe { sys::rrfp_samples_destroy(self.raw.as_ptr()) }
    }
}

/// Decodes and resizes one PNG file as those of samples are: `pixels` gets `image_size` x
/// `image_size` x 3 numbers, -1 .. 1. `pixels_max`: of the picture in its file; 0 = 2^24.
pub fn read_picture(
    path: impl AsRef<Path>,
    image_size: i32,
    pixels_max: i64,
    pixels: &mut [f32],
) -> Result<()> {
    let path = c_path(path)?;
    let side = usize::try_from(image_size).unwrap_or(0);
    check_length(
        "pixels",
        pixels.len(),
        side.saturating_mul(side).saturating_mul(3),
    )?;
    // SAFETY: there is room for the pixels.
    call(|error| unsafe {
        let pixels = pixels.as_mut_ptr();
        sys::rrfp_picture_read(path.as_ptr(), image_size, pixels_max, pixels, error)
    })?;
    Ok(())
}
