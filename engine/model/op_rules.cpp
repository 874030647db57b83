// SPDX-License-Identifier: Apache-2.0
#include "engine/model/op_rules.h"

namespace rrfp::model {

const OpRules* find_rules(OpKind kind) {
  switch (kind) {
    case OpKind::kLinear: return &rules_of::kLinear;
    case OpKind::kEmbedding: return &rules_of::kEmbedding;
    case OpKind::kPositions: return &rules_of::kPositions;
    case OpKind::kRotary: return &rules_of::kRotary;
    case OpKind::kLayerNorm: return &rules_of::kLayerNorm;
    case OpKind::kRmsNorm: return &rules_of::kRmsNorm;
    case OpKind::kGelu: return &rules_of::kGelu;
    case OpKind::kSilu: return &rules_of::kSilu;
    case OpKind::kSwiglu: return &rules_of::kSwiglu;
    case OpKind::kAttention: return &rules_of::kAttention;
    case OpKind::kDropout: return &rules_of::kDropout;
    case OpKind::kAdd: return &rules_of::kAdd;
    case OpKind::kMul: return &rules_of::kMul;
    case OpKind::kConcat: return &rules_of::kConcat;
    case OpKind::kReshape: return &rules_of::kReshape;
    case OpKind::kMean: return &rules_of::kMean;
    case OpKind::kCrossEntropy: return &rules_of::kCrossEntropy;
    case OpKind::kSquaredError: return &rules_of::kSquaredError;
    case OpKind::kPatches: return &rules_of::kPatches;
    case OpKind::kMergeRows: return &rules_of::kMergeRows;
  }
  return nullptr;
}

}  // namespace rrfp::model
