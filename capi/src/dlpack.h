// SPDX-License-Identifier: Apache-2.0
//
// The structs of DLPack's C interface, in the form without a version that every library exchanges
// (https://dmlc.github.io/dlpack/latest/c_api.html). Their layout is fixed for ever.
#pragma once

#include <cstdint>

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};

constexpr int32_t kDLCPU = 1;

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

constexpr uint8_t kDLInt = 0;
constexpr uint8_t kDLUInt = 1;
constexpr uint8_t kDLFloat = 2;
constexpr uint8_t kDLBfloat = 4;
constexpr uint8_t kDLBool = 6;

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null = row-major and contiguous
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  // or null
};
