// SPDX-License-Identifier: Apache-2.0
//
// rrfp eval: the loss of a checkpoint.
#include <unistd.h>

#include <memory>
#include <optional>

#include "capi/cli/batches.h"
#include "capi/cli/captions.h"
#include "capi/cli/checkpoint.h"
#include "capi/cli/commands.h"
#include "capi/cli/hints.h"
#include "capi/cli/options.h"
#include "capi/cli/pipeline.h"
#include "capi/cli/train.h"
#include "capi/cli/vision.h"

namespace rrfp::cli {
namespace {

struct EvalCommand {
  explicit EvalCommand(CLI::App& app) : data(app, "Data"), vision(app, "") {}

  std::string checkpoint;
  std::string split = "validation";
  int64_t samples = 64;
  bool json = false;
  std::optional<int32_t> batch;
  std::optional<int32_t> microbatches;
  std::optional<uint64_t> seed;
  std::optional<int64_t> captions;
  DataOptions data_options;
  PipelineOptions pipeline;
  Settings data;
  Settings vision;  // none: the checkpoint says it
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

struct EvalResult {
  Evaluation loss;
  std::optional<CaptionReport> captions;
};

EvalResult evaluate_checkpoint(const EvalCommand& command, const CheckpointInfo& checkpoint,
                               const TrainingOptions& training, Batches& batches, Cut cut) {
  const rrfp_split split = command.split == "train" ? RRFP_SPLIT_TRAIN : RRFP_SPLIT_VALIDATION;
  if (batches.samples(split) == 0) {
    bad_input("there are no samples for --split " + command.split +
              format(": --validation is %g", command.data_options.validation));
  }
  const auto model = create<Model>(rrfp_model_create_from_checkpoint, checkpoint.path.c_str());
  PipelineParts parts;
  auto wanted = prepared(rrfp_trainer_options_init);
  set_log("eval", wanted);
  wanted.injection = injection_of(training.injection);
  const auto read_sample = [&] {
    return batches.read_typical(split, cut.samples, cut.microbatches);
  };
  set_pipeline(command.pipeline, model.get(), read_sample, parts, wanted);
  const auto trainer = create<Trainer>(rrfp_trainer_create, model.get(), &wanted);
  call(rrfp_trainer_load, trainer.get(), checkpoint.path.c_str(),
       rrfp_load_flags{RRFP_LOAD_WEIGHTS_ONLY}, static_cast<uint64_t*>(nullptr));
  EvalResult result;
  result.loss = evaluate(trainer.get(), batches, split, command.samples, cut);
  if (command.captions) {
    result.captions = caption(trainer.get(), batches, checkpoint.context(), *command.captions);
  }
  return result;
}

Json result_json(const EvalCommand& command, const CheckpointInfo& checkpoint,
                 const EvalResult& result, const Batches& batches) {
  const std::optional<double> entropy = batches.unigram_entropy();
  Json json = {{"checkpoint", command.checkpoint},
               {"step", checkpoint.step},
               {"split", command.split},
               {"samples", result.loss.samples},
               {"loss", result.loss.loss},
               {"unigram_entropy", entropy ? Json(*entropy) : Json()},
               {"tokens_per_s", result.loss.tokens_per_s},
               {"idle_share", result.loss.idle_share}};
  if (checkpoint.reads_pictures()) json["images_per_s"] = result.loss.images_per_s;
  if (result.captions) json["captions"] = captions_json(*result.captions);
  return json;
}

std::string result_text(const EvalCommand& command, const CheckpointInfo& checkpoint,
                        const EvalResult& result, const Batches& batches) {
  std::string text = format("step %lld, %s loss %.4f nats per token over %lld samples\n",
                            static_cast<long long>(checkpoint.step), command.split.c_str(),
                            result.loss.loss, static_cast<long long>(result.loss.samples));
  if (const std::optional<double> entropy = batches.unigram_entropy()) {
    text += format("unigram entropy %.4f nats per token\n", *entropy);
  }
  text += format("%.0f tokens/s, ", result.loss.tokens_per_s);
  if (checkpoint.reads_pictures()) text += format("%.0f images/s, ", result.loss.images_per_s);
  text += format("idle %.1f %%\n", result.loss.idle_share * 100);
  if (result.captions) text += "\n" + captions_text(*result.captions);
  return text;
}

/// The options that the data is opened with.
void take_defaults(EvalCommand& command, const CheckpointInfo& checkpoint) {
  const bool reads_pictures = checkpoint.reads_pictures();
  check_kind(reads_pictures, command.vision, command.data);
  if (command.captions && !reads_pictures) {
    bad_input("--captions: the model of the checkpoint reads no pictures");
  }
  command.data.take_defaults(checkpoint.data);
  set_default_layout(command.pipeline, reads_pictures);
}

/// The options of the model that the data depends on.
ModelOptions model_of(const CheckpointInfo& checkpoint) {
  ModelOptions model;
  CLI::App nobody;
  Settings settings(nobody, "");
  add_model_options(settings, model);
  if (checkpoint.reads_pictures()) settings.take_defaults(checkpoint.model);
  model.context = checkpoint.context();
  return model;
}

int eval(EvalCommand& command) {
  const CheckpointInfo checkpoint = describe_checkpoint(command.checkpoint);
  take_defaults(command, checkpoint);
  const TrainingOptions training = training_of(checkpoint);
  const Cut cut = cut_of(command, training);
  const uint64_t seed = command.seed.value_or(training.seed);
  const auto batches =
      open_batches(command.data_options, model_of(checkpoint), checkpoint.vision_options(), seed);
  check_vocabulary(*batches, checkpoint.vocabulary());
  const EvalResult result = evaluate_checkpoint(command, checkpoint, training, *batches, cut);
  Output out(STDOUT_FILENO);
  if (command.json) {
    out.write_json(result_json(command, checkpoint, result, *batches));
  } else {
    out.write(result_text(command, checkpoint, result, *batches));
  }
  out.check();
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Run& run) {
  CLI::App* const sub =
      app.add_subcommand("eval", "Compute the loss of a checkpoint, and let it write captions.");
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
  sub->add_option(
         "--captions", command->captions,
         "for a model that reads pictures: what it writes behind the last picture of up to "
         "so many validation samples, and how much of it is right")
      ->type_name("N")
      ->check(at_least(1));
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
