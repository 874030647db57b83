// SPDX-License-Identifier: Apache-2.0
//
// rrfp eval: the loss of a checkpoint.
#include <unistd.h>

#include <memory>

#include "capi/cli/batches.h"
#include "capi/cli/checkpoint.h"
#include "capi/cli/commands.h"
#include "capi/cli/options.h"
#include "capi/cli/pipeline.h"

namespace rrfp::cli {
namespace {

struct EvalCommand {
  explicit EvalCommand(CLI::App& app) : data(app, "Data"), cut(app, "Data") {}

  std::string checkpoint;
  std::string split = "validation";
  int64_t samples = 64;
  bool json = false;
  int32_t batch = 16;
  int32_t microbatches = 8;
  uint64_t seed = 1;
  DataOptions data_options;
  PipelineOptions pipeline;
  Settings data;
  Settings cut;
};

Evaluation loss_of(const EvalCommand& command, const CheckpointInfo& checkpoint,
                   const rrfp_data* data, Cut cut) {
  const rrfp_data_info info = info_of(data);
  const bool is_train = command.split == "train";
  const rrfp_split split = is_train ? RRFP_SPLIT_TRAIN : RRFP_SPLIT_VALIDATION;
  const int64_t windows = is_train ? info.train_windows : info.validation_windows;
  if (windows == 0) {
    bad_input("there are no samples for --split " + command.split +
              format(": --validation is %g", command.data_options.validation));
  }
  const Model model = create<Model>(rrfp_model_create_from_checkpoint, checkpoint.path.c_str());
  Batches batches(data, checkpoint.context());
  batches.read(split, 0, cut.samples, cut.microbatches);
  PipelineParts parts;
  auto wanted = prepared(rrfp_trainer_options_init);
  set_log("eval", wanted);
  set_pipeline(command.pipeline, model.get(), batches.first_microbatch(), parts, wanted);
  const Trainer trainer = create<Trainer>(rrfp_trainer_create, model.get(), &wanted);
  call(rrfp_trainer_load, trainer.get(), checkpoint.path.c_str(),
       rrfp_load_flags{RRFP_LOAD_WEIGHTS_ONLY}, static_cast<uint64_t*>(nullptr));
  return evaluate(trainer.get(), batches, split, windows, command.samples, cut);
}

int eval(EvalCommand& command) {
  const CheckpointInfo checkpoint = describe_checkpoint(command.checkpoint);
  command.data.take_defaults(checkpoint.data);
  command.cut.take_defaults(checkpoint.training);
  int32_t rounds = 1;
  if (checkpoint.training.is_object()) rounds = checkpoint.training.value("accumulate", rounds);
  if (command.batch < command.microbatches) {
    bad_input("--batch " + std::to_string(command.batch) + " is less than --microbatches " +
              std::to_string(command.microbatches) + ": each needs a sample");
  }
  const Cut cut = {command.batch / rounds, command.microbatches / rounds};
  const Data data = open_data(command.data_options, checkpoint.context(), command.seed);
  const rrfp_data_info info = info_of(data.get());
  if (checkpoint.vocabulary() != info.vocabulary) {
    bad_input("the data has a vocabulary of " + std::to_string(info.vocabulary) +
              ", the checkpoint one of " + std::to_string(checkpoint.vocabulary()));
  }
  const Evaluation result = loss_of(command, checkpoint, data.get(), cut);
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
  sub->add_option("--samples", command->samples, "samples to evaluate, from the first on")
      ->capture_default_str()
      ->type_name("N")
      ->check(at_least(1));
  choice(sub->add_option("--split", command->split, "which samples")->capture_default_str(),
         {"validation", "train"});
  sub->add_flag("--json", command->json, "the result as one JSON object");
  add_data_options(command->data, command->data_options);
  command->cut.add("--batch", command->batch, "samples that go through the pipeline together")
      ->type_name("N")
      ->check(at_least(1));
  command->cut.add("--microbatches", command->microbatches, "parts that these are cut into")
      ->type_name("N")
      ->check(at_least(1));
  command->cut.add("--seed", command->seed, "of the order of the training samples")->type_name("N");
  sub->get_option("--data")->default_str("that of the training");
  add_pipeline_options(*sub, command->pipeline);
  sub->callback([command, &run] { run = [command] { return eval(*command); }; });
}

}  // namespace rrfp::cli
