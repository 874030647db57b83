// SPDX-License-Identifier: Apache-2.0
//
// rrfp info: the library, or a checkpoint.
#include <unistd.h>

#include <memory>
#include <thread>

#include "capi/cli/api.h"
#include "capi/cli/checkpoint.h"
#include "capi/cli/commands.h"
#include "capi/cli/hints.h"

namespace rrfp::cli {
namespace {

struct InfoCommand {
  std::string checkpoint;
  bool json = false;
};

/// One line per member, members of members indented below it.
// The library refuses objects that are nested deep.
// NOLINTNEXTLINE(misc-no-recursion)
std::string table(const Json& object, size_t indent = 0) {
  constexpr size_t kNameWidth = 20;
  std::string text;
  for (const auto& [key, value] : object.items()) {
    std::string line = std::string(indent, ' ') + key;
    if (value.is_object()) {
      text += line + "\n" + table(value, indent + 2);
      continue;
    }
    line.resize(std::max(kNameWidth + indent, line.size() + 1), ' ');
    text += line;
    if (value.is_array()) {
      std::string list;
      for (const Json& item : value) {
        list +=
            (list.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
      }
      text += list;
    } else {
      text += value.is_string() ? value.get<std::string>() : value.dump();
    }
    text += "\n";
  }
  return text;
}

Json about_library() {
  const uint32_t version = rrfp_version();
  return {{"version", format("%u.%u.%u", version / 1000000, version / 1000 % 1000, version % 1000)},
          {"abi_version", rrfp_abi_version()},
          {"hints", known_hints()},
          {"cpus", std::thread::hardware_concurrency()}};
}

Json about_checkpoint(const std::string& path) {
  const CheckpointInfo checkpoint = describe_checkpoint(path);
  Json about = {{"checkpoint", checkpoint.path}, {"step", checkpoint.step}};
  if (const auto position = checkpoint.state.find("position"); position != checkpoint.state.end()) {
    about["position"] = *position;
  }
  const auto model = create<Model>(rrfp_model_create_from_checkpoint, checkpoint.path.c_str());
  auto info = prepared(rrfp_model_info_init);
  call(rrfp_model_get_info, model.get(), &info);
  about["parameters"] = info.parameter_elements;
  about["trainable"] = info.trainable_elements;
  about["blocks"] = info.blocks;
  about["model"] = checkpoint.model;
  if (checkpoint.reads_pictures()) about["vision"] = checkpoint.vision;
  if (checkpoint.data.is_object()) about["data"] = checkpoint.data;
  if (checkpoint.training.is_object()) about["training"] = checkpoint.training;
  return about;
}

int info(const InfoCommand& command) {
  const Json about =
      command.checkpoint.empty() ? about_library() : about_checkpoint(command.checkpoint);
  Output out(STDOUT_FILENO);
  if (command.json) {
    out.write_json(about);
  } else {
    out.write(table(about));
  }
  out.check();
  return 0;
}

}  // namespace

void add_info(CLI::App& app, Run& run) {
  CLI::App* const sub = app.add_subcommand("info", "Describe the library, or a checkpoint.");
  const auto command = std::make_shared<InfoCommand>();
  sub->add_option("--checkpoint", command->checkpoint,
                  "a checkpoint, or a folder of them: the newest one")
      ->type_name("DIR");
  sub->add_flag("--json", command->json, "as one JSON object");
  sub->callback([command, &run] { run = [command] { return info(*command); }; });
}

}  // namespace rrfp::cli
