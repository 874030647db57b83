// SPDX-License-Identifier: Apache-2.0
#include "capi/cli/batches.h"

#include <algorithm>
#include <vector>

#include "capi/cli/sample_batches.h"
#include "capi/cli/text_batches.h"

namespace rrfp::cli {

std::unique_ptr<Batches> open_batches(const DataOptions& data, const ModelOptions& model,
                                      const VisionOptions& vision, uint64_t seed) {
  if (vision.enabled) return std::make_unique<SampleBatches>(data, model, vision, seed);
  return std::make_unique<TextBatches>(data, model.context, seed);
}

void check_vocabulary(const Batches& batches, int32_t vocabulary) {
  if (batches.vocabulary() == vocabulary) return;
  bad_input("the data has a vocabulary of " + std::to_string(batches.vocabulary()) +
            ", the checkpoint one of " + std::to_string(vocabulary));
}

int64_t spread(int64_t k, int64_t whole, int64_t parts) {
  return k * (whole / parts) + k * (whole % parts) / parts;
}

Evaluation evaluate(rrfp_trainer* trainer, Batches& batches, rrfp_split split, int64_t samples,
                    Cut cut) {
  const int64_t there = batches.samples(split);
  Evaluation result;
  result.samples = std::min(samples, there);
  // Runs of nearly equal length, so that none has fewer samples than microbatches.
  const int64_t runs = std::max<int64_t>(1, result.samples / cut.samples);
  double loss_sum = 0;
  double loss_weight = 0;
  Amount amount;
  int64_t busy_ns = 0;
  int64_t total_ns = 0;
  int64_t wall_ns = 0;
  std::vector<uint64_t> positions;
  for (int64_t run = 0, first = 0; run < runs; ++run) {
    const int64_t size = result.samples / runs + (run < result.samples % runs ? 1 : 0);
    positions.clear();
    for (int64_t k = first; k < first + size; ++k) {
      positions.push_back(static_cast<uint64_t>(spread(k, there, result.samples)));
    }
    const rrfp_batch& batch =
        batches.read_at(split, positions, std::min(cut.microbatches, static_cast<int32_t>(size)));
    auto report = prepared(rrfp_train_report_init);
    call(rrfp_trainer_evaluate, trainer, &batch, &report);
    loss_sum += report.loss_sum;
    loss_weight += report.loss_weight;
    amount.tokens += batches.amount().tokens;
    amount.images += batches.amount().images;
    busy_ns += report.busy_ns;
    total_ns += report.total_ns;
    wall_ns += report.wall_ns;
    first += size;
  }
  result.loss = loss_sum / loss_weight;
  if (total_ns > 0) {
    result.idle_share = 1 - static_cast<double>(busy_ns) / static_cast<double>(total_ns);
  }
  if (wall_ns > 0) {
    const double seconds = static_cast<double>(wall_ns) * 1e-9;
    result.tokens_per_s = static_cast<double>(amount.tokens) / seconds;
    result.images_per_s = static_cast<double>(amount.images) / seconds;
  }
  return result;
}

}  // namespace rrfp::cli
