// SPDX-License-Identifier: Apache-2.0
//
// rrfp hint: a schedule as text, converted, checked, drawn.
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "capi/cli/api.h"
#include "capi/cli/commands.h"
#include "capi/cli/files.h"
#include "capi/cli/hints.h"
#include "capi/cli/options.h"

namespace rrfp::cli {
namespace {

struct HintCommand {
  std::string name;
  int32_t ranks = 0;  // 0 = not given, as for those below
  int32_t microbatches = 0;
  int32_t chunks = 0;
  std::string placement;
  std::string format = "compute";
  bool fsdp = false;
  bool reduce = false;
  std::string out;
  std::string svg;
  bool validate = false;
  std::string order;
};

/// A hint and the training step that it is for.
struct Schedule {
  Hint hint;
  Graph graph;
  int32_t microbatches = 0;
};

[[noreturn]] void unfit(const std::string& option, const std::string& name,
                        const std::string& why) {
  bad_input(option + " does not fit " + name + ", " + why);
}

/// Stages `first` .. `last` of a chain, the last of which has the loss.
void add_chain(rrfp_graph* graph, int32_t first, int32_t last) {
  for (int32_t s = first; s <= last; ++s) {
    auto stage = prepared(rrfp_stage_options_init);
    if (s == last) stage.flags |= RRFP_STAGE_LOSS;
    call(rrfp_graph_add_stage, graph, &stage, static_cast<int32_t*>(nullptr));
    if (s == first) continue;
    call(rrfp_graph_add_edge, graph, s - 1, s, rrfp_edge_flags{0}, static_cast<int32_t*>(nullptr));
  }
}

/// Two chains: the first goes through the ranks upwards, the second one back.
Graph two_streams(const HintCommand& command) {
  const std::string why = "which has two chains of one stage a rank";
  if (command.chunks > 0) {
    unfit("--chunks " + std::to_string(command.chunks), command.name, why);
  }
  if (!command.placement.empty()) unfit("--placement " + command.placement, command.name, why);
  const int32_t ranks = command.ranks;
  Graph graph = create<Graph>(rrfp_graph_create, ranks);
  add_chain(graph.get(), 0, ranks - 1);
  add_chain(graph.get(), ranks, 2 * ranks - 1);
  for (int32_t s = 0; s < 2 * ranks; ++s) {
    call(rrfp_graph_place_stage, graph.get(), s, s < ranks ? s : 2 * ranks - 1 - s);
  }
  return graph;
}

/// The layout that the schedule was published for, but for what the user says.
Graph graph_of_name(const HintCommand& command) {
  rrfp_placement placement = RRFP_PLACEMENT_LINEAR;
  int32_t chunks = 1;
  int32_t streams = 1;
  labelled(command.name, [&] {
    return call(rrfp_hint_layout, command.name.c_str(), &placement, &chunks, &streams);
  });
  if (streams == 2) return two_streams(command);
  if (command.chunks > 0) chunks = command.chunks;
  if (!command.placement.empty()) {
    placement = placement_of(command.placement);
    if (command.chunks == 0) chunks = placement == RRFP_PLACEMENT_LINEAR ? 1 : std::max(2, chunks);
  } else if (placement == RRFP_PLACEMENT_LINEAR && chunks > 1) {
    placement = RRFP_PLACEMENT_LOOP;
  }
  const bool fits =
      placement == RRFP_PLACEMENT_LOOP || chunks == (placement == RRFP_PLACEMENT_V ? 2 : 1);
  if (!fits) {
    unfit("--chunks " + std::to_string(chunks), "--placement " + placement_name(placement),
          placement == RRFP_PLACEMENT_V ? "which has two stages a rank"
                                        : "which has one stage a rank");
  }
  constexpr int32_t kStagesMax = 1 << 20;  // far beyond any pipeline, and no overflow
  if (command.ranks > kStagesMax / chunks) {
    unfit("--chunks " + std::to_string(chunks), "--stages " + std::to_string(command.ranks),
          "with so many stages in all");
  }
  Graph graph = create<Graph>(rrfp_graph_create, command.ranks);
  add_chain(graph.get(), 0, command.ranks * chunks - 1);
  call(rrfp_graph_place, graph.get(), placement);
  return graph;
}

Schedule named_schedule(const HintCommand& command) {
  if (command.ranks == 0)
    bad_input("--stages is missing: the ranks that " + command.name + " is for");
  if (command.microbatches == 0) {
    bad_input("--microbatches is missing: those of a step that " + command.name + " is for");
  }
  Schedule schedule;
  schedule.hint = load_hint(command.name, command.name);
  schedule.graph = graph_of_name(command);
  schedule.microbatches = command.microbatches;
  return schedule;
}

/// The file says what stages there are, and where.
Schedule schedule_of_file(const HintCommand& command) {
  Schedule schedule;
  schedule.hint = load_hint(command.name, command.name);
  auto info = prepared(rrfp_hint_info_init);
  call(rrfp_hint_get_info, schedule.hint.get(), &info);
  const auto check = [&command](const char* option, int32_t given, int32_t has) {
    if (given == 0 || given == has) return;
    unfit(std::string(option) + " " + std::to_string(given), command.name,
          "which has " + std::to_string(has));
  };
  check("--stages", command.ranks, info.ranks);
  check("--microbatches", command.microbatches, info.microbatches);
  if (command.chunks > 0) {
    unfit("--chunks " + std::to_string(command.chunks), command.name, "which says it itself");
  }
  if (!command.placement.empty()) {
    unfit("--placement " + command.placement, command.name, "which says it itself");
  }
  if (info.stages == 0) bad_input(command.name + " has no tasks");
  schedule.graph = create<Graph>(rrfp_graph_create, info.ranks);
  add_chain(schedule.graph.get(), 0, info.stages - 1);
  labelled(command.name, [&schedule] {
    return call(rrfp_graph_place_by_hint, schedule.graph.get(), schedule.hint.get());
  });
  schedule.microbatches = info.microbatches;
  const std::string note = text_of(rrfp_hint_note, schedule.hint.get());
  if (!note.empty()) complain("hint", command.name + ": " + note);
  return schedule;
}

std::string text_of_schedule(const HintCommand& command, const Schedule& schedule) {
  return labelled(command.name, [&] {
    if (command.format == "compute") {
      return text_of(rrfp_hint_to_text, schedule.hint.get(), schedule.graph.get(),
                     schedule.microbatches);
    }
    rrfp_lower_flags flags = 0;
    if (command.fsdp) flags |= RRFP_LOWER_FSDP;
    if (command.reduce) flags |= RRFP_LOWER_REDUCE;
    return text_of(rrfp_hint_lower, schedule.hint.get(), schedule.graph.get(),
                   schedule.microbatches, flags);
  });
}

/// Empty if the schedule can be run in that order, else why not.
std::string refusal(const Schedule& schedule, const std::string& order) {
  try {
    call(rrfp_hint_check, schedule.hint.get(), schedule.graph.get(), schedule.microbatches,
         order_of(order));
    return "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

void require(const HintCommand& command, const Schedule& schedule, const std::string& order) {
  const std::string why = refusal(schedule, order);
  if (!why.empty()) bad_input(command.name + " cannot be run with --order " + order + ": " + why);
}

std::string verdict(const Schedule& schedule) {
  std::string text;
  for (const auto& [what, order] : {std::pair("complete", "ready"), std::pair("strict", "strict"),
                                    std::pair("paired", "paired")}) {
    const std::string why = refusal(schedule, order);
    text += format("%-10s", what) + (why.empty() ? "yes" : "no: " + why) + "\n";
  }
  return text;
}

int hint(const HintCommand& command) {
  const bool is_complete = command.format == "complete";
  if (command.fsdp && !is_complete) bad_input("--fsdp needs --format complete");
  if (command.reduce && !is_complete) bad_input("--reduce needs --format complete");
  check_output_path("--out", command.out);
  check_output_path("--svg", command.svg);
  const Schedule schedule = is_hint_name(command.name, known_hints()) ? named_schedule(command)
                                                                      : schedule_of_file(command);
  Output out(STDOUT_FILENO);
  if (command.validate) {
    out.write(verdict(schedule));
    require(command, schedule, command.order.empty() ? "strict" : command.order);
  } else if (!command.order.empty()) {
    require(command, schedule, command.order);
  }
  if (!command.out.empty()) {
    write_file("--out " + command.out, command.out, text_of_schedule(command, schedule));
  } else if (!command.validate) {
    out.write(text_of_schedule(command, schedule));
  }
  if (!command.svg.empty()) {
    draw_svg(
        [&schedule](const std::string& trace) {
          call(rrfp_hint_write_trace, schedule.hint.get(), schedule.graph.get(),
               schedule.microbatches, trace.c_str());
        },
        command.svg);
  }
  out.check();
  return 0;
}

void add_layout_options(CLI::App& app, HintCommand& command) {
  constexpr int32_t kRanksMax = 65536;
  app.add_option("--stages", command.ranks, "ranks of the pipeline")
      ->default_str("of a file, its rows")
      ->type_name("N")
      ->check(between(1, kRanksMax));
  app.add_option("--microbatches", command.microbatches, "of a step")
      ->default_str("of a file, its own")
      ->type_name("N")
      ->check(at_least(1));
  app.add_option("--chunks", command.chunks, "stages a rank")
      ->default_str("as the schedule was published")
      ->type_name("N")
      ->check(at_least(1));
  choice(app.add_option("--placement", command.placement, "which rank has which stage")
             ->default_str("as the schedule was published"),
         {"linear", "loop", "v"});
}

}  // namespace

void add_hint(CLI::App& app, Run& run) {
  CLI::App* const sub =
      app.add_subcommand("hint", "Write a schedule as text, convert, check or draw it.");
  const auto command = std::make_shared<HintCommand>();
  sub->add_option("schedule", command->name,
                  joined(known_hints()) +
                      ", or a file of schedule text of torch.distributed.pipelining, of either "
                      "form")
      ->type_name("NAME|FILE")
      ->required();
  add_layout_options(*sub, *command);
  choice(sub->add_option("--format", command->format,
                         "compute: tasks only; complete: with sends and receives")
             ->capture_default_str(),
         {"compute", "complete"});
  sub->add_flag("--fsdp", command->fsdp, "complete: with UNSHARD and RESHARD of stages");
  sub->add_flag("--reduce", command->reduce, "complete: with REDUCE_GRAD of stages");
  sub->add_option("--out", command->out, "write the text to a file")->type_name("FILE");
  sub->add_option("--svg", command->svg, "draw it: F, I and W take a unit of time each")
      ->type_name("FILE");
  sub->add_flag("--validate", command->validate,
                "instead of the text, say whether it names every task and can be obeyed");
  choice(sub->add_option("--order", command->order,
                         "fail if it cannot be run in this order (of --validate: strict)"),
         {"ready", "strict", "paired"});
  sub->callback([command, &run] { run = [command] { return hint(*command); }; });
}

}  // namespace rrfp::cli
