/* SPDX-License-Identifier: Apache-2.0
 *
 * The struct that a DLPack capsule points to: the layout is that of dlpack.h version 0.x, which is
 * what __dlpack__ hands out. Here only its deleter is called; the C library reads the rest.
 */
#ifndef RRFP_PYTHON_DLPACK_H
#define RRFP_PYTHON_DLPACK_H

#include <stdint.h>

typedef struct DLTensor {
  void *data;
  struct {
    int32_t device_type, device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#endif /* RRFP_PYTHON_DLPACK_H */
