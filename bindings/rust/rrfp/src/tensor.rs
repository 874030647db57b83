// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::marker::PhantomData;
use std::mem::{align_of, size_of, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::os::raw::c_void;
use std::slice;

use crate::ffi::{self, set_flag, sys};
use crate::{DType, Element, Error, Result};

fn mismatch(text: String) -> Error {
    Error::new(sys::RRFP_ERR_TENSOR_MISMATCH, text)
}

/// A view of `length` elements at `data`, if that is what the shape says.
pub(crate) fn view<T: Element>(
    data: *const T,
    length: usize,
    shape: &[i64],
) -> Result<sys::rrfp_tensor> {
    if shape.len() > sys::RRFP_DIMS_MAX as usize {
        return Err(mismatch(format!(
            "ndim is {}; at most 8 are possible",
            shape.len()
        )));
    }
    let elements = shape.iter().try_fold(1usize, |product, extent| {
        usize::try_from(*extent)
            .ok()
            .and_then(|extent| product.checked_mul(extent))
    });
    if elements != Some(length) {
        return Err(mismatch(format!(
            "{length} elements do not have the shape {shape:?}"
        )));
    }
    let mut raw = EMPTY;
    raw.data = data as *mut c_void;
    raw.shape[..shape.len()].copy_from_slice(shape);
    raw.ndim = shape.len() as i32;
    raw.dtype = T::RAW;
    Ok(raw)
}

pub(crate) const EMPTY: sys::rrfp_tensor = sys::rrfp_tensor {
    data: std::ptr::null_mut(),
    buffer: std::ptr::null_mut(),
    shape: [0; 8],
    strides: [0; 8],
    ndim: 0,
    dtype: sys::RRFP_NONE,
    device_type: sys::RRFP_DEVICE_CPU,
    device_id: 0,
    flags: 0,
    reserved: 0,
};

/// A tensor that is read: one that arrived, or one to put. Row-major and contiguous.
///
/// It borrows its memory for `'a`: the running task's, where it came from that, or a slice.
#[derive(Clone)]
#[repr(transparent)]
pub struct Tensor<'a> {
    pub(crate) raw: sys::rrfp_tensor,
    memory: PhantomData<&'a [u8]>,
}

impl<'a> Tensor<'a> {
    /// The caller vouches that the memory stays as it is for `'a`.
    pub(crate) fn from_raw(raw: sys::rrfp_tensor) -> Self {
        Self {
            raw,
            memory: PhantomData,
        }
    }

    /// A view of a slice, which [`Task::put`](crate::Task::put) copies and a
    /// [`Batch`](crate::Batch) reads in place. Fails if the shape has another number of elements.
    pub fn from_slice<T: Element>(data: &'a [T], shape: &[i64]) -> Result<Self> {
        Ok(Self::from_raw(view(data.as_ptr(), data.len(), shape)?))
    }

    /// A gradient that is zero: nothing is sent for it.
    pub fn none() -> Self {
        Self::from_raw(EMPTY)
    }

    /// As an activation to put: whether the consumer must send a gradient of the same shape back.
    #[must_use]
    pub fn wants_gradient(mut self, on: bool) -> Self {
        set_flag(&mut self.raw.flags, sys::RRFP_TENSOR_WANTS_GRADIENT, on);
        self
    }

    /// Whether the sender of this activation asked for a gradient.
    pub fn is_gradient_wanted(&self) -> bool {
        self.raw.flags & sys::RRFP_TENSOR_WANTS_GRADIENT as u32 != 0
    }

    pub fn dtype(&self) -> DType {
        DType::from_raw(self.raw.dtype)
    }

    pub fn shape(&self) -> &[i64] {
        &self.raw.shape[..self.raw.ndim as usize]
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        if self.raw.dtype == sys::RRFP_NONE {
            return 0;
        }
        self.shape().iter().map(|extent| *extent as usize).product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first element, wherever it lies. Null if there is none.
    pub fn as_ptr(&self) -> *const c_void {
        self.raw.data
    }

    /// The elements. Fails if they are of another type, or not in memory of the CPU.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        if self.raw.dtype != T::RAW {
            let (is, wanted) = (self.dtype(), T::DTYPE);
            return Err(mismatch(format!(
                "the tensor is of {is:?}, not of {wanted:?}"
            )));
        }
        if self.raw.device_type != sys::RRFP_DEVICE_CPU {
            let device = self.raw.device_type;
            return Err(mismatch(format!(
                "the tensor is on a device of type {device}, not 1 (CPU)"
            )));
        }
        let length = self.len();
        if length == 0 {
            return Ok(&[]);
        }
        if self.raw.data as usize % align_of::<T>() != 0 {
            let (data, align) = (self.raw.data, align_of::<T>());
            return Err(mismatch(format!(
                "data at {data:?} is not aligned to {align} bytes"
            )));
        }
        // SAFETY: the memory holds these elements, contiguous, and nobody writes to it during 'a.
        Ok(unsafe { slice::from_raw_parts(self.raw.data as *const T, length) })
    }

    /// The only element.
    pub fn item<T: Element>(&self) -> Result<T> {
        match self.as_slice::<T>()? {
            [item] => Ok(*item),
            all => Err(mismatch(format!(
                "the tensor has {} elements, not 1",
                all.len()
            ))),
        }
    }

    /// A reference to the memory that outlives the task. Fails for a view of a slice, whose memory
    /// is not counted.
    pub fn retain(&self) -> Result<SharedTensor> {
        if self.raw.buffer.is_null() && !self.is_empty() {
            return Err(mismatch("a view of a slice cannot be retained".to_string()));
        }
        // SAFETY: the buffer is referred to by the task or message that `self` borrows from.
        unsafe { sys::rrfp_buffer_retain(self.raw.buffer) };
        Ok(SharedTensor { raw: self.raw })
    }

    /// The same as a `DLManagedTensor` for another library, which holds a reference until it calls
    /// its deleter; it may do so on any thread. Whoever gets the pointer must see to that, and must
    /// not write to the tensor. Fails for a view of a slice.
    pub fn to_dlpack(&self) -> Result<*mut sys::DLManagedTensor> {
        let mut out = std::ptr::null_mut();
        // SAFETY: the pointers are valid during the call.
        ffi::call(|error| unsafe { sys::rrfp_tensor_to_dlpack(&self.raw, &mut out, error) })?;
        Ok(out)
    }

    /// A view of a tensor of another library. Fails if that is not row-major and contiguous, or of
    /// a kind or on a device that rrfp does not know.
    ///
    /// # Safety
    /// `managed` points to a valid `DLManagedTensor`, which nobody deletes and whose elements
    /// nobody writes during `'a`.
    pub unsafe fn from_dlpack(managed: *const sys::DLManagedTensor) -> Result<Self> {
        let mut raw = EMPTY;
        // SAFETY: as the caller promises.
        ffi::call(|error| unsafe { sys::rrfp_tensor_from_dlpack(managed, &mut raw, error) })?;
        Ok(Self::from_raw(raw))
    }
}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}{:?} at {:?}",
            self.dtype(),
            self.shape(),
            self.raw.data
        )
    }
}

/// A tensor in counted memory, kept beyond its task. It can be read and put, by any thread.
#[derive(Debug)]
pub struct SharedTensor {
    raw: sys::rrfp_tensor,
}

// SAFETY: nobody writes to the memory any more, and its count may be changed by any thread.
unsafe impl Send for SharedTensor {}
unsafe impl Sync for SharedTensor {}

impl SharedTensor {
    /// To read it or to put it.
    pub fn tensor(&self) -> Tensor<'_> {
        Tensor::from_raw(self.raw)
    }
}

impl Clone for SharedTensor {
    fn clone(&self) -> Self {
        // SAFETY: we hold a reference.
        unsafe { sys::rrfp_buffer_retain(self.raw.buffer) };
        Self { raw: self.raw }
    }
}

impl Drop for SharedTensor {
    fn drop(&mut self) {
        // SAFETY: gives up the reference that we hold.
        unsafe { sys::rrfp_buffer_release(self.raw.buffer) }
    }
}

/// A tensor in engine memory, aligned to 64 bytes, that the running task writes. It becomes a
/// [`Tensor`], which can be put without a copy and not be written to any more.
///
/// `T` is an [`Element`], or `MaybeUninit` of one for memory that has not been cleared.
pub struct Output<'t, T> {
    raw: sys::rrfp_tensor,
    memory: PhantomData<&'t mut [T]>,
}

impl<'t, T> Output<'t, T> {
    /// The caller vouches for the memory and for the bits in it.
    pub(crate) fn from_raw(raw: sys::rrfp_tensor) -> Self {
        Self {
            raw,
            memory: PhantomData,
        }
    }

    pub fn shape(&self) -> &[i64] {
        &self.raw.shape[..self.raw.ndim as usize]
    }

    /// The number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }
}

impl<'t, T: Element> Output<'t, T> {
    /// Ends the writing.
    pub fn into_tensor(self) -> Tensor<'t> {
        Tensor::from_raw(self.raw)
    }
}

impl<'t, T: Element> Output<'t, MaybeUninit<T>> {
    /// # Safety
    /// Every element has been written.
    pub unsafe fn assume_init(self) -> Output<'t, T> {
        Output::from_raw(self.raw)
    }
}

impl<'t, T: Element> From<Output<'t, T>> for Tensor<'t> {
    fn from(output: Output<'t, T>) -> Self {
        output.into_tensor()
    }
}

impl<T> Deref for Output<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let length = self.shape().iter().map(|extent| *extent as usize).product();
        if length == 0 {
            return &[];
        }
        // SAFETY: the engine gave memory for these elements, and it is ours alone.
        unsafe { slice::from_raw_parts(self.raw.data as *const T, length) }
    }
}

impl<T> DerefMut for Output<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let length = self.len();
        if length == 0 {
            return &mut [];
        }
        // SAFETY: as for deref.
        unsafe { slice::from_raw_parts_mut(self.raw.data as *mut T, length) }
    }
}

impl<T> fmt::Debug for Output<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}{:?} at {:?}",
            DType::from_raw(self.raw.dtype),
            self.shape(),
            self.raw.data
        )
    }
}

/// The tensors that arrived along an edge: a slice of them.
pub struct Message<'t> {
    /// Most messages carry one tensor, which needs no allocation.
    first: Tensor<'t>,
    all: Vec<Tensor<'t>>,
    count: usize,
    opaque: *mut c_void,
}

impl<'t> Message<'t> {
    /// `read(tensors, capacity, opaque)` asks the engine and gives the number of tensors.
    #[inline]
    pub(crate) fn read<F>(mut read: F) -> Result<Option<Self>>
    where
        F: FnMut(*mut sys::rrfp_tensor, usize, *mut *mut c_void) -> Result<Option<usize>>,
    {
        let mut message = Self {
            first: Tensor::none(),
            all: Vec::new(),
            count: 0,
            opaque: std::ptr::null_mut(),
        };
        match read(&mut message.first.raw, 1, &mut message.opaque)? {
            Some(count) => message.count = count,
            None => return Ok(None),
        }
        if message.count > 1 {
            message.all.resize(message.count, Tensor::none());
            // A Tensor is a transparent rrfp_tensor.
            let tensors = message.all.as_mut_ptr() as *mut sys::rrfp_tensor;
            read(tensors, message.count, &mut message.opaque)?;
        }
        Ok(Some(message))
    }

    /// The pointer that the sender gave along; the engine never looks at it.
    pub fn opaque(&self) -> *mut c_void {
        self.opaque
    }
}

impl<'t> Deref for Message<'t> {
    type Target = [Tensor<'t>];

    fn deref(&self) -> &[Tensor<'t>] {
        if self.count > 1 {
            &self.all
        } else {
            &slice::from_ref(&self.first)[..self.count]
        }
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
