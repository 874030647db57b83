// SPDX-License-Identifier: Apache-2.0
#include "engine/train/name_stages.h"

#include <map>
#include <string>

#include "engine/model/partition.h"

namespace rrfp::train {

namespace {

/// Names in a model may be of any length, those in a timeline may not.
constexpr size_t kBlockNameBytesMax = 500;

std::string shortened(const std::string& name) {
  if (name.size() <= kBlockNameBytesMax) return name;
  size_t end = kBlockNameBytesMax;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end) + "...";
}

std::string range(const std::string& first, const std::string& last, bool one) {
  return one ? first : first + " .. " + last;
}

/// By branch. Blocks may share a name; branches that did would be taken for one.
std::vector<std::string> branch_names(const model::Graph& graph,
                                      const std::vector<int32_t>& branches) {
  std::vector<std::string> names;
  std::map<std::string, int32_t> uses;
  for (size_t b = 0; b < branches.size(); ++b) {
    if (static_cast<size_t>(branches[b]) < names.size()) continue;
    std::string name = shortened(graph.blocks()[b].name);
    if (uses[name]++ > 0) name += " (block " + std::to_string(b) + ")";
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::vector<trace::StageName> name_stages(const model::Graph& graph, const model::Cut& cut) {
  const std::vector<int32_t> branches = model::find_branches(graph);
  const std::vector<std::string> names = branch_names(graph, branches);
  std::vector<trace::StageName> out;
  for (const model::CutStage& stage : cut.stages) {
    const auto first = static_cast<size_t>(stage.first_block);
    const auto last = static_cast<size_t>(stage.last_block);
    const auto begin = static_cast<size_t>(branches[first]);
    const auto end = static_cast<size_t>(branches[last]);
    out.push_back({range(shortened(graph.blocks()[first].name),
                         shortened(graph.blocks()[last].name), first == last),
                   range(names[begin], names[end], begin == end)});
  }
  return out;
}

}  // namespace rrfp::train
