// SPDX-License-Identifier: Apache-2.0
//
// rrfp eval: the loss of a checkpoint.
#include <unistd.h>

#include <memory>
#include <optional>

#include "capi/cli/batches.h"
#include "capi/cli/checkpoint.h"
#include "capi/cli/commands.h"
#include "capi/cli/hints.h"
#include "capi/cli/options.h"
#include "capi/cli/pipeline.h"
#include "capi/cli/train.h"

namespace rrfp::cli {
namespace {

struct EvalCommand {
  explicit EvalCommand(CLI::App& app) : data(app, "Data") {}

  std::string checkpoint;
  std::string split = "validation";
  int64_t samples = 64;
  bool json = false;
  std::optional<int32_t> batch;
  std::optional<int32_t> microbatches;
  std::optional<uint64_t> seed;
  DataOptions data_options;
  PipelineOptions pipeline;
  Settings data;
};

/// What the checkpoint says of the steps of its training.
TrainingOptions training_of(const CheckpointInfo& checkpoint) {
  TrainingOptions training;
  CLI::App nobody;  // gives these options: the values have the checks of the train command
  Settings settings(nobody, "");
  add_batch_options(settings, training);
  settings.take_defaults(checkpoint.training);
  check_batch(training);
  return training;
}

/// What is given counts as it is; the rest is as in a round of the training.
Cut cut_of(const EvalCommand& command, const TrainingOptions& training) {
  Cut cut = evaluation_cut(training);
  cut.samples = command.batch.value_or(cut.samples);
  cut.microbatches = command.microbatches.value_or(cut.microbatches);
  if (cut.samples < cut.microbatches) {
    bad_input("--batch " + std::to_string(cut.samples) + " is less than --microbatches " +
              std::to_string(cut.microbatches) + ": each needs a sample");
  }
  return cut;
}

Evaluation loss_of(const EvalCommand& command, const CheckpointInfo& checkpoint,
                   const TrainingOptions& training, const rrfp_data* data, Cut cut) {
  const rrfp_data_info info = info_of(data);
  const bool is_train = command.split == "train";
  const rrfp_split split = is_train ? RRFP_SPLIT_TRAIN : RRFP_SPLIT_VALIDATION;
  const int64_t windows = is_train ? info.train_windows : info.validation_windows;
  if (windows == 0) {
    bad_input("there are no samples for --split " + command.split +
              format(": --validation is %g", command.data_options.validation));
  }
  const auto model = create<Model>(rrfp_model_create_from_checkpoint, checkpoint.path.c_str());
  Batches batches(data, checkpoint.context());
  batches.read(split, 0, cut.samples, cut.microbatches);
  PipelineParts parts;
  auto wanted = prepared(rrfp_trainer_options_init);
  set_log("eval", wanted);
  wanted.injection = injection_of(training.injection);
  set_pipeline(command.pipeline, model.get(), batches.first_microbatch(), parts, wanted);
  const auto trainer = create<Trainer>(rrfp_trainer_create, model.get(), &wanted);
  call(rrfp_trainer_load, trainer.get(), checkpoint.path.c_str(),
       rrfp_load_flags{RRFP_LOAD_WEIGHTS_ONLY}, static_cast<uint64_t*>(nullptr));
  return evaluate(trainer.get(), batches, split, windows, command.samples, cut);
}

int eval(EvalCommand& command) {
  const CheckpointInfo checkpoint = describe_checkpoint(command.checkpoint);
  command.data.take_defaults(checkpoint.data);
  const TrainingOptions training = training_of(checkpoint);
  const Cut cut = cut_of(command, training);
  const uint64_t seed = command.seed.value_or(training.seed);
  const Data data = open_data(command.data_options, checkpoint.context(), seed);
  const rrfp_data_info info = info_of(data.get());
  if (checkpoint.vocabulary() != info.vocabulary) {
    bad_input("the data has a vocabulary of " + std::to_string(info.vocabulary) +
              ", the checkpoint one of " + std::to_string(checkpoint.vocabulary()));
  }
  const Evaluation result = loss_of(command, checkpoint, training, data.get(), cut);
  Output out(STDOUT_FILENO);
  if (command.json) {
    out.write_json({{"checkpoint", command.checkpoint},
                    {"step", checkpoint.step},
                    {"split", command.split},
                    {"samples", result.samples},
                    {"loss", result.loss},
                    {"unigram_entropy", info.unigram_entropy},
                    {"tokens_per_s", result.tokens_per_s},
                    {"idle_share", result.idle_share}});
  } else {
    out.write(format("step %lld, %s loss %.4f nats per token over %lld samples\n",
                     static_cast<long long>(checkpoint.step), command.split.c_str(), result.loss,
                     static_cast<long long>(result.samples)));
    out.write(format("unigram entropy %.4f nats per token\n", info.unigram_entropy));
    out.write(
        format("%.0f tokens/s, idle %.1f %%\n", result.tokens_per_s, result.idle_share * 100));
  }
  out.check();
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Run& run) {
  CLI::App* const sub = app.add_subcommand("eval", "Compute the loss of a checkpoint.");
  const auto command = std::make_shared<EvalCommand>(*sub);
  sub->add_option("--checkpoint", command->checkpoint,
                  "a checkpoint, or a folder of them: the newest one")
      ->type_name("DIR")
      ->required();
  sub->add_option("--samples", command->samples,
                  "samples to evaluate, spread evenly over all of the split")
      ->capture_default_str()
      ->type_name("N")
      ->check(at_least(1));
  choice(sub->add_option("--split", command->split, "which samples")->capture_default_str(),
         {"validation", "train"});
  sub->add_flag("--json", command->json, "the result as one JSON object");
  add_data_options(command->data, command->data_options);
  sub->add_option("--batch", command->batch, "samples that go through the pipeline together")
      ->default_str("as in the training")
      ->type_name("N")
      ->group("Data")
      ->check(at_least(1));
  sub->add_option("--microbatches", command->microbatches, "parts that these are cut into")
      ->default_str("as in the training")
      ->type_name("N")
      ->group("Data")
      ->check(at_least(1));
  sub->add_option("--seed", command->seed, "of the order of the training samples")
      ->default_str("that of the training")
      ->type_name("N")
      ->group("Data");
  sub->get_option("--data")->default_str("that of the training");
  add_pipeline_options(*sub, command->pipeline);
  sub->callback([command, &run] { run = [command] { return eval(*command); }; });
}

}  // namespace rrfp::cli
