// SPDX-License-Identifier: Apache-2.0
use crate::ffi::sys;

/// The type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// As a gradient: zero, nothing is sent for it.
    None,
    F32,
    F64,
    F16,
    BF16,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Bool,
    /// One that this version of the crate has no name for.
    Other(i32),
}

const DTYPES: [(DType, i32); 14] = [
    (DType::None, sys::RRFP_NONE),
    (DType::F32, sys::RRFP_F32),
    (DType::F64, sys::RRFP_F64),
    (DType::F16, sys::RRFP_F16),
    (DType::BF16, sys::RRFP_BF16),
    (DType::I8, sys::RRFP_I8),
    (DType::I16, sys::RRFP_I16),
    (DType::I32, sys::RRFP_I32),
    (DType::I64, sys::RRFP_I64),
    (DType::U8, sys::RRFP_U8),
    (DType::U16, sys::RRFP_U16),
    (DType::U32, sys::RRFP_U32),
    (DType::U64, sys::RRFP_U64),
    (DType::Bool, sys::RRFP_BOOL),
];

impl DType {
    /// The number of the C interface.
    pub fn raw(self) -> i32 {
        if let Self::Other(raw) = self {
            return raw;
        }
        DTYPES
            .iter()
            .find(|(dtype, _)| *dtype == self)
            .map_or(-1, |(_, raw)| *raw)
    }

    pub(crate) fn from_raw(raw: i32) -> Self {
        DTYPES
            .iter()
            .find(|(_, known)| *known == raw)
            .map_or(Self::Other(raw), |(dtype, _)| *dtype)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is laid out as the elements of a tensor are. All bit patterns are valid.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    const DTYPE: DType;
    /// The number of `DTYPE`.
    const RAW: i32;
}

macro_rules! elements {
    ($($type:ty = $dtype:ident, $raw:ident;)*) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            const RAW: i32 = sys::$raw;
        })*
    };
}

/// The bits of an IEEE half; arithmetic is left to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The bits of a bfloat16: the upper half of an `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct BF16(pub u16);

/// A truth value of a tensor: 0 is false. (A Rust `bool` must not be anything but 0 and 1.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bool(pub u8);

elements! {
    f32 = F32, RRFP_F32;
    f64 = F64, RRFP_F64;
    F16 = F16, RRFP_F16;
    BF16 = BF16, RRFP_BF16;
    i8 = I8, RRFP_I8;
    i16 = I16, RRFP_I16;
    i32 = I32, RRFP_I32;
    i64 = I64, RRFP_I64;
    u8 = U8, RRFP_U8;
    u16 = U16, RRFP_U16;
    u32 = U32, RRFP_U32;
    u64 = U64, RRFP_U64;
    Bool = Bool, RRFP_BOOL;
}
