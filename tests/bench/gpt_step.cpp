// SPDX-License-Identifier: Apache-2.0
//
// Training steps of a small language model: 4 layers, d 256, 4 heads, context 128, vocabulary 256,
// AdamW, f32. tests/bench/peers/torch_gpt.py does the same work in PyTorch;
// tests/bench/gpt_compare.py runs both side by side.
//
//   gpt_step [STEPS [STAGES [MICROBATCHES [BATCH [HINT]]]]]     default 10 1 1 8 zb-h1
//
// Each rank is one thread. Prints the median time of a step, tokens per second, the share of the
// time that ranks were idle, and the peak memory of the process.
#include <rrfp/train.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr int32_t kVocabulary = 256;
constexpr int32_t kContext = 128;

void check(rrfp_status status, const rrfp_error& error) {
  if (status >= 0) return;
  std::fprintf(stderr, "gpt_step: %s: %s\n", rrfp_status_name(status), error.text);
  std::exit(2);
}

int32_t argument(int argc, char** argv, int k, int32_t fallback) {
  return argc > k ? static_cast<int32_t>(std::strtol(argv[k], nullptr, 10)) : fallback;
}

}  // namespace

int main(int argc, char** argv) {
  const int32_t steps = argument(argc, argv, 1, 10);
  const int32_t stages = argument(argc, argv, 2, 1);
  const int32_t microbatches = argument(argc, argv, 3, 1);
  const int32_t batch_size = argument(argc, argv, 4, 8);
  const char* const hint_name = argc > 5 ? argv[5] : "zb-h1";
  if (steps < 1 || microbatches < 1 || batch_size % microbatches != 0) {
    std::fprintf(stderr, "gpt_step: BATCH must be a multiple of MICROBATCHES, STEPS at least 1\n");
    return 2;
  }
  rrfp_error error = {};
  rrfp_gpt_options gpt;
  rrfp_gpt_options_init(&gpt);
  gpt.vocabulary = kVocabulary;
  gpt.context = kContext;
  gpt.layers = 4;
  gpt.dim = 256;
  gpt.heads = 4;
  rrfp_model* model = nullptr;
  check(rrfp_model_create_gpt(&gpt, &model, &error), error);
  rrfp_hint* hint = nullptr;
  check(rrfp_hint_create(hint_name, &hint, &error), error);

  // Random tokens: only the time matters.
  std::minstd_rand random(1);
  std::vector<int32_t> ids(static_cast<size_t>(2 * batch_size * kContext));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % kVocabulary);
  std::vector<rrfp_tensor> inputs(2 * static_cast<size_t>(microbatches));
  const int64_t samples = batch_size / microbatches;
  for (size_t k = 0; k < inputs.size(); ++k) {
    inputs[k] = {};
    inputs[k].data = ids.data() + static_cast<int64_t>(k) * samples * kContext;
    inputs[k].dtype = RRFP_I32;
    inputs[k].ndim = 2;
    inputs[k].shape[0] = samples;
    inputs[k].shape[1] = kContext;
  }
  std::vector<int64_t> costs(6);
  check(rrfp_model_measure(model, inputs.data(), costs.data(), &error), error);
  std::vector<int32_t> first_blocks(static_cast<size_t>(std::max(stages, 1)));
  check(rrfp_model_partition(model, stages, costs.data(), first_blocks.data(), &error), error);

  rrfp_trainer_options options;
  rrfp_trainer_options_init(&options);
  options.stages = stages;
  options.first_blocks = first_blocks.data();
  options.hint = hint;
  options.clip_norm = 1;
  rrfp_trainer* trainer = nullptr;
  check(rrfp_trainer_create(model, &options, &trainer, &error), error);
  rrfp_batch batch;
  rrfp_batch_init(&batch);
  batch.microbatches = microbatches;
  batch.inputs = inputs.data();

  constexpr int32_t kWarmUp = 2;
  std::vector<int64_t> times;
  int64_t total_ns = 0;
  int64_t busy_ns = 0;
  for (int32_t s = 0; s < steps + kWarmUp; ++s) {
    rrfp_train_report report;
    rrfp_train_report_init(&report);
    check(rrfp_trainer_step(trainer, &batch, &report, &error), error);
    if (s < kWarmUp) continue;
    times.push_back(report.wall_ns);
    total_ns += report.wall_ns * stages;
    busy_ns += report.busy_ns;
  }
  std::nth_element(times.begin(), times.begin() + steps / 2, times.end());
  const double median_s = static_cast<double>(times[static_cast<size_t>(steps / 2)]) / 1e9;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "rrfp stages %d microbatches %d batch %d ms_per_step %.2f tokens_per_s %.0f "
      "idle_share %.3f peak_mib %.0f\n",
      stages, microbatches, batch_size, median_s * 1e3, batch_size * kContext / median_s,
      1 - static_cast<double>(busy_ns) / static_cast<double>(total_ns),
      static_cast<double>(usage.ru_maxrss) / 1024);
  rrfp_trainer_destroy(trainer);
  rrfp_hint_destroy(hint);
  rrfp_model_destroy(model);
  return 0;
}
