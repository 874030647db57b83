// SPDX-License-Identifier: Apache-2.0
#include "capi/src/guard.h"

namespace {

constexpr bool same(rrfp::core::Code code, rrfp_status status) {
  return static_cast<rrfp_status>(code) == status;
}

using rrfp::core::Code;
static_assert(
    same(Code::kOk, RRFP_OK) && same(Code::kAgain, RRFP_AGAIN) &&
    same(Code::kStepDone, RRFP_STEP_DONE) && same(Code::kAbsent, RRFP_ABSENT) &&
    same(Code::kInvalidArgument, RRFP_ERR_INVALID_ARGUMENT) &&
    same(Code::kNullHandle, RRFP_ERR_NULL_HANDLE) &&
    same(Code::kBadStructSize, RRFP_ERR_STRUCT_SIZE) &&
    same(Code::kOutOfRange, RRFP_ERR_OUT_OF_RANGE) &&
    same(Code::kUnknownName, RRFP_ERR_UNKNOWN_NAME) && same(Code::kSyntax, RRFP_ERR_SYNTAX) &&
    same(Code::kCycle, RRFP_ERR_CYCLE) && same(Code::kUnplacedStage, RRFP_ERR_UNPLACED_STAGE) &&
    same(Code::kCapTooSmall, RRFP_ERR_CAP_TOO_SMALL) && same(Code::kBadOrder, RRFP_ERR_BAD_ORDER) &&
    same(Code::kTensorMismatch, RRFP_ERR_TENSOR_MISMATCH) &&
    same(Code::kNoMemory, RRFP_ERR_NO_MEMORY) && same(Code::kIo, RRFP_ERR_IO) &&
    same(Code::kBadData, RRFP_ERR_BAD_DATA) && same(Code::kNonFinite, RRFP_ERR_NON_FINITE) &&
    same(Code::kHeaderMismatch, RRFP_ERR_HEADER_MISMATCH) &&
    same(Code::kStageFailed, RRFP_ERR_STAGE_FAILED) && same(Code::kBadState, RRFP_ERR_BAD_STATE) &&
    same(Code::kBusy, RRFP_ERR_BUSY) && same(Code::kTimeout, RRFP_ERR_TIMEOUT) &&
    same(Code::kCancelled, RRFP_ERR_CANCELLED) && same(Code::kClosed, RRFP_ERR_CLOSED) &&
    same(Code::kForked, RRFP_ERR_FORKED) && same(Code::kInternal, RRFP_ERR_INTERNAL));

}  // namespace

uint32_t rrfp_version(void) {
  return RRFP_VERSION_MAJOR * 1000000u + RRFP_VERSION_MINOR * 1000u + RRFP_VERSION_PATCH;
}

uint32_t rrfp_abi_version(void) {
  return RRFP_ABI_VERSION;
}

const char* rrfp_status_name(rrfp_status status) {
  switch (status) {
#define RRFP_NAME(value) \
  case value: return #value
    RRFP_NAME(RRFP_OK);
    RRFP_NAME(RRFP_AGAIN);
    RRFP_NAME(RRFP_STEP_DONE);
    RRFP_NAME(RRFP_ABSENT);
    RRFP_NAME(RRFP_ERR_INVALID_ARGUMENT);
    RRFP_NAME(RRFP_ERR_NULL_HANDLE);
    RRFP_NAME(RRFP_ERR_STRUCT_SIZE);
    RRFP_NAME(RRFP_ERR_OUT_OF_RANGE);
    RRFP_NAME(RRFP_ERR_UNKNOWN_NAME);
    RRFP_NAME(RRFP_ERR_SYNTAX);
    RRFP_NAME(RRFP_ERR_CYCLE);
    RRFP_NAME(RRFP_ERR_UNPLACED_STAGE);
    RRFP_NAME(RRFP_ERR_CAP_TOO_SMALL);
    RRFP_NAME(RRFP_ERR_BAD_ORDER);
    RRFP_NAME(RRFP_ERR_TENSOR_MISMATCH);
    RRFP_NAME(RRFP_ERR_NO_MEMORY);
    RRFP_NAME(RRFP_ERR_IO);
    RRFP_NAME(RRFP_ERR_BAD_DATA);
    RRFP_NAME(RRFP_ERR_HEADER_MISMATCH);
    RRFP_NAME(RRFP_ERR_STAGE_FAILED);
    RRFP_NAME(RRFP_ERR_NON_FINITE);
    RRFP_NAME(RRFP_ERR_BAD_STATE);
    RRFP_NAME(RRFP_ERR_BUSY);
    RRFP_NAME(RRFP_ERR_TIMEOUT);
    RRFP_NAME(RRFP_ERR_CANCELLED);
    RRFP_NAME(RRFP_ERR_CLOSED);
    RRFP_NAME(RRFP_ERR_FORKED);
    RRFP_NAME(RRFP_ERR_INTERNAL);
#undef RRFP_NAME
    default: return "unknown";
  }
}
