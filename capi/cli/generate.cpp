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

/// With pictures. Without a text it is only these.
PicturePrompt picture_prompt_of(const GenerateCommand& command, const CheckpointInfo& checkpoint) {
  std::string text = command.prompt;
  if (text.empty()) {
    for (size_t k = 0; k < command.images.size(); ++k) text += kImageMark;
  }
  return {text, command.images, checkpoint.vision_options(), checkpoint.pixels_max()};
}

struct Prompt {
  std::vector<int32_t> tokens;
  bool has_pictures = false;
};

/// Reads the prompt.
Prompt start(const GenerateCommand& command, const CheckpointInfo& checkpoint, int32_t context,
             rrfp_generator* generator) {
  if (!command.images.empty() && !checkpoint.reads_pictures()) {
    bad_input("--image: the model of the checkpoint reads no pictures");
  }
  if (!command.images.empty() && !command.prompt_tokens.empty()) {
    bad_input("--image does not go with --prompt-tokens: give --prompt");
  }
  const bool has_mark =
      checkpoint.reads_pictures() && command.prompt.find(kImageMark) != std::string::npos;
  if (command.images.empty() && !has_mark) {
    Prompt prompt{.tokens = prompt_of(command, checkpoint)};
    call(rrfp_generator_start, generator, prompt.tokens.data(), prompt.tokens.size());
    return prompt;
  }
  const PicturePrompt prompt = picture_prompt_of(command, checkpoint);
  // The beginning of a text can be forgotten, a picture cannot.
  if (prompt.tokens().size() >= static_cast<size_t>(context)) {
    bad_input(
        format("the prompt has %zu tokens with those of its pictures; the context of %d has "
               "no room behind it",
               prompt.tokens().size(), context));
  }
  call(rrfp_generator_start_inputs, generator, prompt.inputs().data());
  return {.tokens = prompt.tokens(), .has_pictures = true};
}

struct Drawn {
  std::vector<int32_t> tokens;
  bool is_complete = false;  // the model ended it
};

/// Draws and shows up to so many tokens.
Drawn draw(const GenerateCommand& command, const CheckpointInfo& checkpoint,
           rrfp_generator* generator, int64_t most, Output& out) {
  const bool is_bytes = checkpoint.is_bytes();
  auto sampling = prepared(rrfp_sampling_init);
  sampling.temperature = command.temperature;
  sampling.top_k = command.top_k;
  sampling.top_p = command.top_p;
  sampling.seed = command.seed;
  const bool is_terminal = out.is_terminal();
  TerminalFilter filter;
  Drawn drawn;
  for (int64_t i = 0; i < most && out.error() == 0; ++i) {
    int32_t token = 0;
    call(rrfp_generator_next, generator, &sampling, &token);
    drawn.is_complete = checkpoint.reads_pictures() && token >= RRFP_TOKEN_IMAGE;
    if (drawn.is_complete) break;
    drawn.tokens.push_back(token);
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
  return drawn;
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
  const Prompt prompt = start(command, checkpoint, context, generator.get());

  Output out(STDOUT_FILENO);
  const int64_t room = context - static_cast<int64_t>(prompt.tokens.size());
  const bool is_short = prompt.has_pictures && room < command.tokens;
  const int64_t most = is_short ? room : command.tokens;
  const Drawn drawn = draw(command, checkpoint, generator.get(), most, out);
  if (command.json) {
    Json result = {{"checkpoint", command.checkpoint},
                   {"step", checkpoint.step},
                   {"prompt_tokens", prompt.tokens},
                   {"tokens", drawn.tokens},
                   {"complete", drawn.is_complete}};
    if (checkpoint.is_bytes()) {
      result["text"] = std::string(drawn.tokens.begin(), drawn.tokens.end());
    }
    out.write_json(result);
  }
  out.check();
  if (is_short && !drawn.is_complete) {
    complain("generate", format("the context of %d tokens is full", context));
  }
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
         "only these")
      ->type_name("FILE")
      ->expected(1, -1);
  sub->add_option("--tokens", command->tokens,
                  "tokens to draw; fewer if a model that reads pictures ends its text, or its "
                  "pictures leave no room")
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
