// SPDX-License-Identifier: Apache-2.0
//
// Batches of a step, whatever the samples are, and the loss over many samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "capi/cli/api.h"
#include "capi/cli/options.h"

namespace rrfp::cli {

/// What a batch holds.
struct Amount {
  int64_t tokens = 0;  // places of sequences, those of pictures counted
  int64_t images = 0;
};

/// Samples of two splits, and batches of them. The memory of a batch is used again for the next
/// one.
class Batches {
 public:
  virtual ~Batches() = default;
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  /// Samples position .. position + samples - 1, in microbatches. samples >= microbatches. Valid
  /// until the next call.
  virtual rrfp_batch& read(rrfp_split split, uint64_t position, int32_t samples,
                           int32_t microbatches) = 0;
  /// The same for samples from anywhere.
  virtual rrfp_batch& read_at(rrfp_split split, std::span<const uint64_t> positions,
                              int32_t microbatches) = 0;

  [[nodiscard]] virtual int64_t samples(rrfp_split split) const = 0;
  [[nodiscard]] virtual int32_t vocabulary() const = 0;
  /// What there is, in one line.
  [[nodiscard]] virtual std::string description() const = 0;
  /// Nats per token, where it is known: what guessing from the frequency of tokens alone comes to.
  [[nodiscard]] virtual std::optional<double> unigram_entropy() const { return std::nullopt; }
  /// Of the batch that was read last.
  [[nodiscard]] virtual Amount amount() const = 0;
  /// Reads batches until one has a microbatch that has something of everything, if there is one in
  /// the split. Its tensors, valid until the next batch is read.
  virtual std::span<const rrfp_tensor> read_typical(rrfp_split split, int32_t samples,
                                                    int32_t microbatches) = 0;

 protected:
  Batches() = default;
};

/// Opens the data, after the checks that name this command's options.
///   seed   of the order of the training samples
std::unique_ptr<Batches> open_batches(const DataOptions& data, const ModelOptions& model,
                                      const VisionOptions& vision, uint64_t seed);

/// Throws if the data has another vocabulary than a model.
void check_vocabulary(const Batches& batches, int32_t vocabulary);

/// k whole / parts, without the product, which may be too large: where part k of evenly spread ones
/// begins.
int64_t spread(int64_t k, int64_t whole, int64_t parts);

/// How training cuts what goes through the pipeline in one run. Sums of losses depend on it in
/// their last bits, so evaluation does the same.
struct Cut {
  int32_t samples = 0;
  int32_t microbatches = 0;
};

struct Evaluation {
  int64_t samples = 0;
  double loss = 0;  // mean per token
  double idle_share = 0;
  double tokens_per_s = 0;
  double images_per_s = 0;
};

/// The loss over so many samples of a split, evenly spread over it: neighbours are from the same
/// file. All samples if there are no more.
Evaluation evaluate(rrfp_trainer* trainer, Batches& batches, rrfp_split split, int64_t samples,
                    Cut cut);

}  // namespace rrfp::cli
