// SPDX-License-Identifier: Apache-2.0
//! What every call across the C boundary needs: errors, versioned structs, texts, callbacks.

use std::ffi::{CStr, CString};
use std::mem::{size_of, ManuallyDrop, MaybeUninit};
use std::os::raw::{c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

pub(crate) use rrfp_sys as sys;

use crate::{Error, LogLevel, Result};

/// Calls a function that takes an error out. Gives its status, which is not negative.
#[inline]
pub(crate) fn call(f: impl FnOnce(*mut sys::rrfp_error) -> i32) -> Result<i32> {
    let mut error = MaybeUninit::<sys::rrfp_error>::uninit();
    let status = f(error.as_mut_ptr());
    if status >= 0 {
        return Ok(status);
    }
    // SAFETY: the library fills in the error when it gives a negative status.
    Err(Error::from_raw(status, unsafe { error.assume_init_ref() }))
}

/// Calls a `*_create` function.
pub(crate) fn create<T>(
    f: impl FnOnce(*mut *mut T, *mut sys::rrfp_error) -> i32,
) -> Result<NonNull<T>> {
    let mut out = ptr::null_mut();
    call(|error| f(&mut out, error))?;
    NonNull::new(out).ok_or_else(|| Error::new(sys::RRFP_ERR_INTERNAL, "a handle is null"))
}

/// A struct that begins with `struct_size`, as its `*_init` function sets it.
///
/// The function writes the struct of the library, which may be newer and larger than that of this
/// crate, so it gets more room; what the size says afterwards is what this crate knows.
pub(crate) fn init<T: Copy>(f: unsafe extern "C" fn(*mut T)) -> T {
    const SIZE_MAX: usize = 4096; // the library refuses larger structs
    #[repr(C)]
    union Room<T: Copy> {
        value: T,
        bytes: [u64; SIZE_MAX / size_of::<u64>()],
    }
    let mut room = Room {
        bytes: [0; SIZE_MAX / size_of::<u64>()],
    };
    // SAFETY: all structs that are passed here are plain data that may be zero, and begin with a
    // u32.
    unsafe {
        let value = &mut room as *mut Room<T> as *mut T;
        f(value);
        *(value as *mut u32) = size_of::<T>() as u32;
        room.value
    }
}

/// Reads a text that the library writes into a buffer. It may grow between two calls.
pub(crate) fn text(
    mut f: impl FnMut(*mut c_char, usize, *mut usize, *mut sys::rrfp_error) -> i32,
) -> Result<String> {
    let mut buffer = vec![0u8; 256];
    loop {
        let mut size = 0;
        call(|error| f(buffer.as_mut_ptr().cast(), buffer.len(), &mut size, error))?;
        if size <= buffer.len() {
            buffer.truncate(size.saturating_sub(1));
            return Ok(match String::from_utf8(buffer) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            });
        }
        buffer.resize(size, 0);
    }
}

/// A name or a text as C wants it.
pub(crate) fn c_string(text: &str, what: &str) -> Result<CString> {
    CString::new(text).map_err(|error| {
        let place = error.nul_position();
        invalid(format!("{what} has a zero byte at position {place}"))
    })
}

pub(crate) fn c_path(path: impl AsRef<Path>) -> Result<CString> {
    let path = path.as_ref();
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| invalid(format!("the path {} has a zero byte", path.display())))
}

/// A text for people: one that holds a zero byte still gets through.
pub(crate) fn c_message(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).expect("zero bytes have been replaced")
}

pub(crate) fn invalid(text: String) -> Error {
    Error::new(sys::RRFP_ERR_INVALID_ARGUMENT, text)
}

/// An array whose length the library cannot see must have the length that the library will read.
pub(crate) fn check_length(what: &str, length: usize, expected: usize) -> Result<()> {
    if length == expected {
        return Ok(());
    }
    Err(Error::new(
        sys::RRFP_ERR_OUT_OF_RANGE,
        format!("{what} has {length} entries; expected {expected}"),
    ))
}

/// `rows * columns` for such an array; negative numbers, which the library will refuse, count as 0.
pub(crate) fn area(rows: i32, columns: i32) -> usize {
    usize::try_from(rows).unwrap_or(0) * usize::try_from(columns).unwrap_or(0)
}

/// A pointer to the entries, or null for none.
pub(crate) fn pointer_or_null<T>(entries: &[T]) -> *const T {
    if entries.is_empty() {
        ptr::null()
    } else {
        entries.as_ptr()
    }
}

pub(crate) fn set_flag(flags: &mut u32, flag: i32, on: bool) {
    if on {
        *flags |= flag as u32;
    } else {
        *flags &= !(flag as u32);
    }
}

/// Raw options that are kept between calls. Pointers in them are null until a call fills in a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<T>(pub T);

// SAFETY: see above; what remains are numbers.
unsafe impl<T> Send for Raw<T> {}
unsafe impl<T> Sync for Raw<T> {}

type LogFn = dyn Fn(LogLevel, &str) + Send + Sync;

/// The log closure of a program, at an address that stays: whoever gives it to the library keeps a
/// clone for as long as the library may call it.
#[derive(Clone)]
pub(crate) struct Log(Arc<Box<LogFn>>);

impl Log {
    pub(crate) fn new(f: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Box::new(f)))
    }

    pub(crate) fn raw(log: Option<&Self>) -> (sys::rrfp_log_fn, *mut c_void) {
        match log {
            Some(Self(f)) => (Some(on_log), Arc::as_ptr(f) as *mut c_void),
            None => (None, ptr::null_mut()),
        }
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

unsafe extern "C" fn on_log(user_data: *mut c_void, level: i32, text: *const c_char) {
    // SAFETY: `user_data` is that of Log::raw, and the text is valid during the call.
    let (log, text) = unsafe { (&*(user_data as *const Box<LogFn>), CStr::from_ptr(text)) };
    let level = LogLevel::from_raw(level).unwrap_or(LogLevel::Error);
    // A panic must not unwind into C. The panic hook has reported it; the step goes on.
    let result = catch_unwind(AssertUnwindSafe(|| log(level, &text.to_string_lossy())));
    if let Err(payload) = result {
        let _ = ManuallyDrop::new(payload); // whose drop might panic again
    }
}

/// An `int32_t` with named values as an enum.
macro_rules! c_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $raw:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(i32)]
        pub enum $name {
            $($(#[$value_doc])* $value = $crate::ffi::sys::$raw,)*
        }

        impl $name {
            #[allow(dead_code)] // not all of them come back from the library
            pub(crate) fn from_raw(raw: i32) -> Option<Self> {
                match raw {
                    $($crate::ffi::sys::$raw => Some(Self::$value),)*
                    _ => None,
                }
            }
        }
    };
}

/// A struct that the library fills in, with the same fields.
macro_rules! report {
    ($(#[$doc:meta])* $name:ident from $raw:ident, $init:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $name {
            /// Lets a call fill one in.
            pub(crate) fn read(
                f: impl FnOnce(
                    *mut $crate::ffi::sys::$raw,
                    *mut $crate::ffi::sys::rrfp_error,
                ) -> i32,
            ) -> $crate::Result<Self> {
                let mut raw = $crate::ffi::init($crate::ffi::sys::$init);
                $crate::ffi::call(|error| f(&mut raw, error))?;
                Ok(Self { $($field: raw.$field,)* })
            }
        }
    };
}

/// Builder methods that set one field of the raw options; enums are turned into their numbers.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty $(as $raw:ty)?,)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.raw.0.$field = $field $(as $raw)?;
            self
        })*
    };
}

pub(crate) use {c_enum, report, setters};
