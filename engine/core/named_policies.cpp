// SPDX-License-Identifier: Apache-2.0
#include "engine/core/named_policies.h"

#include <algorithm>
#include <array>

namespace rrfp::core {
namespace {

constexpr int32_t kHold = 250;
constexpr int32_t kHoldOneStage = 500;
constexpr int32_t kReserve = 100;
constexpr int32_t kRoomy = 500;
constexpr int32_t kTight = 750;

constexpr std::array<NamedPolicy, 7> kPolicies = {{
    {.name = "rf-1", .hint = "zb-h1", .policy = {.hold_permille = kHoldOneStage}, .tent = true},
    {.name = "rf-v",
     .hint = "bfw",
     .policy = {.reserve_permille = kReserve},
     .placement = Placement::kV,
     .chunks = 2,
     .tent = true},
    {.name = "rf-m",
     .hint = "zb-v",
     .policy = {.hold_permille = kHold, .roomy_permille = kRoomy, .reserve_permille = kReserve},
     .placement = Placement::kV,
     .chunks = 2,
     .tent = true},
    {.name = "rf-mt",
     .hint = "zb-v",
     .policy = {.hold_permille = kHold, .roomy_permille = kTight, .reserve_permille = kReserve},
     .placement = Placement::kV,
     .chunks = 2,
     .tent = true},
    {.name = "rf-h",
     .hint = "zb-h1",
     .policy = {.hold_permille = kHold, .reserve_permille = kReserve},
     .placement = Placement::kV,
     .chunks = 2,
     .tent = true},
    {.name = "rf-h2",
     .hint = "zb-h2",
     .policy = {.hold_permille = kHold, .roomy_permille = kTight, .reserve_permille = kReserve},
     .placement = Placement::kV,
     .chunks = 2,
     .tent = true},
    {.name = "bfw-sort", .hint = "bfw", .policy = {}, .tent = true},
}};

}  // namespace

std::span<const NamedPolicy> named_policies() {
  return kPolicies;
}

const NamedPolicy* find_policy(std::string_view name) {
  const auto found = std::find_if(kPolicies.begin(), kPolicies.end(),
                                  [&](const NamedPolicy& p) { return p.name == name; });
  return found == kPolicies.end() ? nullptr : &*found;
}

ScheduleLayout layout_of(std::string_view name) {
  if (const NamedPolicy* policy = find_policy(name)) return {policy->placement, policy->chunks, 1};
  const std::string_view base = name.substr(0, name.find(':'));
  if (base == "interleaved" || base == "interleaved-zb" || base == "looped-bfs") {
    return {Placement::kLoop, 2, 1};
  }
  if (base == "zb-v" || base == "v-half" || base == "v-min" || base == "dualpipe-v") {
    return {Placement::kV, 2, 1};
  }
  if (base == "dualpipe") return {Placement::kLinear, 1, 2};
  return {};
}

}  // namespace rrfp::core
