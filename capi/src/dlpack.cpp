// SPDX-License-Identifier: Apache-2.0
//
// Tensors of other libraries: the same memory, described in another way.
#include "capi/src/dlpack.h"

#include <array>
#include <memory>
#include <string>

#include "capi/src/guard.h"

using namespace rrfp;        // NOLINT(google-build-using-namespace)
using namespace rrfp::capi;  // NOLINT(google-build-using-namespace)

namespace {

struct Kind {
  rrfp_dtype dtype;
  DLDataType dl;
};

constexpr std::array kKinds = {
    Kind{RRFP_F32, {kDLFloat, 32, 1}}, Kind{RRFP_F64, {kDLFloat, 64, 1}},
    Kind{RRFP_F16, {kDLFloat, 16, 1}}, Kind{RRFP_BF16, {kDLBfloat, 16, 1}},
    Kind{RRFP_I8, {kDLInt, 8, 1}},     Kind{RRFP_I16, {kDLInt, 16, 1}},
    Kind{RRFP_I32, {kDLInt, 32, 1}},   Kind{RRFP_I64, {kDLInt, 64, 1}},
    Kind{RRFP_U8, {kDLUInt, 8, 1}},    Kind{RRFP_U16, {kDLUInt, 16, 1}},
    Kind{RRFP_U32, {kDLUInt, 32, 1}},  Kind{RRFP_U64, {kDLUInt, 64, 1}},
    Kind{RRFP_BOOL, {kDLBool, 8, 1}},
};
static_assert(kKinds.size() + 1 == comm::kDTypeCount);

Status mismatch(std::string text) {
  return {Code::kTensorMismatch, "the DLPack tensor " + std::move(text)};
}

Status read_dtype(DLDataType dl, rrfp_dtype& out) {
  for (const Kind& kind : kKinds) {
    if (kind.dl.code != dl.code || kind.dl.bits != dl.bits || kind.dl.lanes != dl.lanes) continue;
    out = kind.dtype;
    return {};
  }
  return mismatch("has elements of code " + std::to_string(dl.code) + ", " +
                  std::to_string(dl.bits) + " bits, " + std::to_string(dl.lanes) +
                  " lanes, which rrfp does not know");
}

/// Strides of extents of 0 or 1 element say nothing. The product of the extents fits.
bool contiguous(const DLTensor& in) {
  if (in.strides == nullptr || std::count(in.shape, in.shape + in.ndim, 0) > 0) return true;
  int64_t expected = 1;
  for (int32_t d = in.ndim - 1; d >= 0; --d) {
    if (in.shape[d] > 1 && in.strides[d] != expected) return false;
    expected *= in.shape[d];
  }
  return true;
}

Status count_elements(const int64_t* shape, int32_t ndim, int64_t& out) {
  out = 1;
  for (int32_t d = 0; d < ndim; ++d) {
    if (shape[d] >= 0 && !__builtin_mul_overflow(out, shape[d], &out)) continue;
    return mismatch("has the impossible extent " + std::to_string(shape[d]) + " in dimension " +
                    std::to_string(d));
  }
  return {};
}

Status check_shape(const DLTensor& in) {
  if (in.ndim < 0 || in.ndim > RRFP_DIMS_MAX) {
    return mismatch("has " + std::to_string(in.ndim) + " dimensions; expected 0 to " +
                    std::to_string(RRFP_DIMS_MAX));
  }
  if (in.ndim > 0 && in.shape == nullptr) return mismatch("has no shape");
  int64_t elements = 1;
  if (Status s = count_elements(in.shape, in.ndim, elements); !s.ok()) return s;
  if (elements > 0 && in.data == nullptr) return mismatch("has no memory");
  if (!contiguous(in)) {
    return mismatch("has strides; expected row-major and contiguous: make a contiguous copy first");
  }
  return {};
}

Status read(const DLManagedTensor* managed, rrfp_tensor& out) {
  if (managed == nullptr) return null_argument("managed");
  const DLTensor& in = managed->dl_tensor;
  if (in.device.device_type != kDLCPU) {
    return mismatch("is on a device of type " + std::to_string(in.device.device_type) +
                    "; expected the CPU (1)");
  }
  rrfp_tensor read = {};
  if (Status s = read_dtype(in.dtype, read.dtype); !s.ok()) return s;
  if (Status s = check_shape(in); !s.ok()) return s;
  read.data = in.data == nullptr ? nullptr : static_cast<char*>(in.data) + in.byte_offset;
  std::copy_n(in.shape, in.ndim, read.shape);
  read.ndim = in.ndim;
  read.device_type = RRFP_DEVICE_CPU;
  out = read;
  return {};
}

size_t byte_size(const rrfp_tensor& tensor) {
  auto bytes = static_cast<size_t>(comm::size_of(static_cast<comm::DType>(tensor.dtype)));
  for (int32_t d = 0; d < tensor.ndim; ++d) bytes *= static_cast<size_t>(tensor.shape[d]);
  return bytes;
}

/// What another library holds of a tensor of ours.
struct Lent {
  DLManagedTensor managed;
  std::array<int64_t, RRFP_DIMS_MAX> shape;
  std::array<int64_t, RRFP_DIMS_MAX> strides;
  rrfp_buffer* buffer;

  static void give_back(DLManagedTensor* managed) {
    const std::unique_ptr<Lent> lent(static_cast<Lent*>(managed->manager_ctx));
    rrfp_buffer_release(lent->buffer);
  }
};

}  // namespace

rrfp_status rrfp_tensor_from_dlpack(const DLManagedTensor* managed, rrfp_tensor* out,
                                    rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (out == nullptr) return null_argument("out");
    return read(managed, *out);
  });
}

rrfp_status rrfp_rank_wrap_dlpack(rrfp_rank* rank, uint64_t ticket, DLManagedTensor* managed,
                                  rrfp_tensor* out, rrfp_error* error) {
  rrfp_tensor tensor = {};
  rrfp_status status = guard(error, [&]() -> Status {
    if (out == nullptr) return null_argument("out");
    return read(managed, tensor);
  });
  if (status != RRFP_OK) return status;
  const auto release = [](void* user) {
    auto* const theirs = static_cast<DLManagedTensor*>(user);
    if (theirs->deleter != nullptr) theirs->deleter(theirs);
  };
  status = rrfp_rank_wrap(rank, ticket, tensor.data, byte_size(tensor), release, managed,
                          &tensor.buffer, error);
  if (status == RRFP_OK) *out = tensor;
  return status;
}

rrfp_status rrfp_tensor_to_dlpack(const rrfp_tensor* tensor, DLManagedTensor** out,
                                  rrfp_error* error) {
  return guard(error, [&]() -> Status {
    if (tensor == nullptr) return null_argument("tensor");
    if (out == nullptr) return null_argument("out");
    if (tensor->buffer == nullptr) {
      return {
          Code::kInvalidArgument,
          "the tensor has no buffer that could keep its memory; expected one that was received, "
          "allocated or wrapped"};
    }
    if (tensor->ndim < 0 || tensor->ndim > RRFP_DIMS_MAX) {
      return {Code::kTensorMismatch, "ndim is " + std::to_string(tensor->ndim) +
                                         "; expected 0 to " + std::to_string(RRFP_DIMS_MAX)};
    }
    const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(),
                                          [&](const Kind& k) { return k.dtype == tensor->dtype; });
    if (kind == kKinds.end()) {
      return {Code::kTensorMismatch,
              "dtype is " + std::to_string(tensor->dtype) + "; expected one with elements"};
    }
    const int32_t ndim = tensor->ndim;
    int64_t elements = 0;
    if (Status s = count_elements(tensor->shape, ndim, elements); !s.ok()) return s;
    auto lent = std::make_unique<Lent>();
    int64_t stride = 1;
    for (int32_t d = ndim - 1; d >= 0; --d) {
      lent->shape[static_cast<size_t>(d)] = tensor->shape[d];
      lent->strides[static_cast<size_t>(d)] = stride;
      if (elements > 0) stride *= tensor->shape[d];
    }
    const DLDevice device = {tensor->device_type == 0 ? kDLCPU : tensor->device_type,
                             tensor->device_id};
    lent->managed = {
        {tensor->data, device, ndim, kind->dl, lent->shape.data(), lent->strides.data(), 0},
        lent.get(),
        Lent::give_back};
    lent->buffer = tensor->buffer;
    rrfp_buffer_retain(lent->buffer);
    *out = &lent.release()->managed;
    return {};
  });
}
