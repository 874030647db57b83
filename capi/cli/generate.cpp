// SPDX-License-Identifier: Apache-2.0
//
// rrfp generate: continues a text with the weights of a checkpoint.
#include <unistd.h>

#include <limits>
#include <memory>

#include "capi/cli/checkpoint.h"
#include "capi/cli/commands.h"
#include "capi/cli/options.h"
#include "capi/cli/pipeline.h"
#include "capi/cli/vision.h"

namespace rrfp::cli {
namespace {

struct GenerateCommand {
  std::string checkpoint;
  std::string prompt;
  std::vector<int32_t> prompt_tokens;
  std::vector<std::string> images;
  int64_t tokens = 200;
  double temperature = 1;
  int32_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 1;
  int32_t context = 0;
  bool json = false;
};

/// Of a model that does not read pictures, or without them.
std::vector<int32_t> prompt_of(const GenerateCommand& command, const CheckpointInfo& checkpoint) {
  const int32_t vocabulary = checkpoint.vocabulary();
  if (command.prompt_tokens.empty()) {
    if (!checkpoint.is_bytes()) {
      bad_input("the model has a vocabulary of " + std::to_string(vocabulary) +
                " tokens that are not bytes: give --prompt-tokens");
    }
    const std::string text = command.prompt.empty() ? "\n" : command.prompt;
    std::vector<int32_t> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  for (const int32_t token : command.prompt_tokens) {
    if (token < 0 || token >= vocabulary) {
      bad_input("--prompt-tokens has " + std::to_string(token) + ", expected numbers from 0 to " +
                std::to_string(vocabulary - 1));
    }
  }
  return command.prompt_tokens;
}

/// Reads the prompt. Returns its tokens.
std::vector<int32_t> start(const GenerateCommand& command, const CheckpointInfo& checkpoint,
                           rrfp_generator* generator) {
  if (!checkpoint.reads_pictures()) {
    if (!command.images.empty())
      bad_input("--image: the model of the checkpoint reads no pictures");
    std::vector<int32_t> prompt = prompt_of(command, checkpoint);
    call(rrfp_generator_start, generator, prompt.data(), prompt.size());
    return prompt;
  }
  const auto read = [&](const PicturePrompt& prompt) {
    if (const size_t most = static_cast<size_t>(checkpoint.context());
        prompt.tokens().size() > most) {
      bad_input(format("the prompt has %zu tokens, the model reads at most %zu",
                       prompt.tokens().size(), most));
    }
    call(rrfp_generator_start_inputs, generator, prompt.inputs().data());
    return prompt.tokens();
  };
  if (!command.prompt_tokens.empty() && !command.images.empty()) {
    bad_input("--image does not go with --prompt-tokens: give --prompt");
  }
  const VisionOptions vision = checkpoint.vision_options();
  std::string text = command.prompt;
  if (text.empty()) {
    for (size_t k = 0; k < command.images.size(); ++k) text += "<image>";
  }
  if (!command.prompt_tokens.empty() || text.empty()) {
    return read(PicturePrompt(prompt_of(command, checkpoint), vision));
  }
  return read(PicturePrompt(text, command.images, vision, checkpoint.pixels_max()));
}

/// Whether the text is complete.
bool is_end(int32_t token, const CheckpointInfo& checkpoint) {
  return checkpoint.reads_pictures() && token >= RRFP_TOKEN_IMAGE;
}

/// Draws and shows up to so many tokens. Returns them.
std::vector<int32_t> draw(const GenerateCommand& command, const CheckpointInfo& checkpoint,
                          rrfp_generator* generator, int64_t most, Output& out) {
  const bool is_bytes = checkpoint.is_bytes();
  auto sampling = prepared(rrfp_sampling_init);
  sampling.temperature = command.temperature;
  sampling.top_k = command.top_k;
  sampling.top_p = command.top_p;
  sampling.seed = command.seed;
  const bool is_terminal = out.is_terminal();
  TerminalFilter filter;
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < most && out.error() == 0; ++i) {
    int32_t token = 0;
    call(rrfp_generator_next, generator, &sampling, &token);
    if (is_end(token, checkpoint)) break;
    tokens.push_back(token);
    if (command.json) continue;
    if (is_bytes) {
      const char byte = static_cast<char>(token);
      out.write(std::string(1, is_terminal ? filter(byte) : byte));
    } else {
      out.write((i == 0 ? "" : " ") + std::to_string(token));
    }
  }
  // A file gets the bytes of the model and nothing else.
  if (!command.json && (is_terminal || !is_bytes)) out.write("\n");
  return tokens;
}

int generate(const GenerateCommand& command) {
  const CheckpointInfo checkpoint = describe_checkpoint(command.checkpoint);
  const auto model = create<Model>(rrfp_model_create_from_checkpoint, checkpoint.path.c_str());
  auto wanted = prepared(rrfp_trainer_options_init);
  set_log("generate", wanted);
  const auto trainer = create<Trainer>(rrfp_trainer_create, model.get(), &wanted);
  call(rrfp_trainer_load, trainer.get(), checkpoint.path.c_str(),
       rrfp_load_flags{RRFP_LOAD_WEIGHTS_ONLY}, static_cast<uint64_t*>(nullptr));
  const int32_t context = command.context > 0 ? command.context : checkpoint.context();
  const auto generator = create<Generator>(rrfp_generator_create, trainer.get(), context);
  const std::vector<int32_t> prompt = start(command, checkpoint, generator.get());

  Output out(STDOUT_FILENO);
  // Of a text the beginning can be forgotten, pictures stay.
  const int64_t room = context - static_cast<int64_t>(prompt.size());
  const int64_t most =
      command.images.empty() ? command.tokens : std::min<int64_t>(command.tokens, room);
  const std::vector<int32_t> tokens = draw(command, checkpoint, generator.get(), most, out);
  if (command.json) {
    Json result = {{"checkpoint", command.checkpoint},
                   {"step", checkpoint.step},
                   {"prompt_tokens", prompt},
                   {"tokens", tokens}};
    if (checkpoint.is_bytes()) result["text"] = std::string(tokens.begin(), tokens.end());
    out.write_json(result);
  }
  out.check();
  return 0;
}

}  // namespace

void add_generate(CLI::App& app, Run& run) {
  CLI::App* const sub = app.add_subcommand("generate", "Continue a text.");
  const auto command = std::make_shared<GenerateCommand>();
  sub->add_option("--checkpoint", command->checkpoint,
                  "a checkpoint, or a folder of them: the newest one")
      ->type_name("DIR")
      ->required();
  CLI::Option* const prompt =
      sub->add_option("--prompt", command->prompt, "the text to continue; none = a new line")
          ->type_name("TEXT");
  sub->add_option("--prompt-tokens", command->prompt_tokens, "the same as token ids, such as 1,2,3")
      ->type_name("IDS")
      ->delimiter(',')
      ->excludes(prompt);
  sub->add_option(
         "--image", command->images,
         "pictures (PNG), one for each \"<image>\" of the prompt, which without --prompt is "
         "only these; the text ends where the model ends it")
      ->type_name("FILE")
      ->expected(1, -1);
  sub->add_option("--tokens", command->tokens, "tokens to draw")
      ->capture_default_str()
      ->type_name("N")
      ->check(at_least(0));
  sub->add_option("--temperature", command->temperature, "0 = always the most likely token")
      ->capture_default_str()
      ->type_name("X")
      ->check(real(0, std::numeric_limits<double>::max()));
  sub->add_option("--top-k", command->top_k, "draw from the k most likely tokens; 0 = from all")
      ->capture_default_str()
      ->type_name("K")
      ->check(at_least(0));
  sub->add_option("--top-p", command->top_p,
                  "draw from the most likely tokens that have this probability together")
      ->capture_default_str()
      ->type_name("P")
      ->check(real(0, 1));
  sub->add_option("--seed", command->seed, "of the draws")->capture_default_str()->type_name("N");
  sub->add_option("--context", command->context, "longest sequence that is attended to")
      ->default_str("that of the model")
      ->type_name("N")
      ->check(at_least(1));
  sub->add_flag("--json", command->json, "tokens and text as one JSON object");
  sub->callback([command, &run] { run = [command] { return generate(*command); }; });
}

}  // namespace rrfp::cli
