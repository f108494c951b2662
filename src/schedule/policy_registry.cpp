// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policy_registry.cpp: the registry of policies by name.
//
// Invariants
//   1. `mutex` guards `entries`, which only grow; makers run without it.
#include "schedule/policy_registry.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "schedule/policies/built_in.h"

namespace quadriga {
namespace {

struct Entry {
  std::string help;
  PolicyMaker make;
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, Entry, std::less<>> entries{
      {"earliest-finish",
       {"where a task ends earliest with its copies; the longest path to the end first",
        make_earliest_finish}},
      {"data-first",
       {"a device gets the tasks of the tile that unlocks most work for its bytes",
        make_data_first}},
      {"weight",
       {"where most of a task's data is, else the least work by the devices' weights",
        make_weight}},
      {"affinity",
       {"owners, else where a task ends earliest; idle devices take what lies with them",
        make_affinity}},
      {"steal", {"a task stays where it became ready; idle devices steal at random", make_steal}},
  };
};

Registry& registry() {
  static Registry all;
  return all;
}

std::optional<Eviction> rule_of(std::string_view name) {
  if (name.empty() || name == "policy") return {};
  if (name == "farthest_use") return Eviction::farthest_use;
  if (name == "least_recent") return Eviction::least_recent;
  if (name == "read_first") return Eviction::read_first;
  fail(
      Errc::invalid_argument,
      fmt::format("unknown eviction '{}'; known are policy, farthest_use, least_recent, read_first",
                  name));
}

[[noreturn]] void refuse(std::string_view name) {
  std::string known;
  for (const PolicyInfo& each : policies())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
  fail(Errc::invalid_argument, fmt::format("unknown policy '{}'; registered are {}", name, known));
}

}  // namespace

void register_policy(std::string name, std::string help, PolicyMaker maker) {
  require(!name.empty(), "register_policy(): a policy needs a name");
  require(!help.empty() && help.find('\n') == std::string::npos,
          fmt::format("register_policy(): the help of '{}' should be one line", name));
  require(maker != nullptr, fmt::format("register_policy(): '{}' needs a maker", name));
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  const auto [entry, is_new] =
      all.entries.try_emplace(std::move(name), Entry{std::move(help), std::move(maker)});
  require(is_new, fmt::format("register_policy(): there is a policy '{}' already", entry->first));
}

std::vector<PolicyInfo> policies() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::vector<PolicyInfo> found;
  for (const auto& [name, entry] : all.entries) found.push_back({name, entry.help});
  return found;
}

std::unique_ptr<CheckedPolicy> make_policy(std::string_view name, const PolicyContext& context,
                                           std::string_view eviction) {
  const std::string_view wanted = name.empty() ? "affinity" : name;
  PolicyMaker maker;
  {
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    const auto found = all.entries.find(wanted);
    if (found != all.entries.end()) maker = found->second.make;
  }
  if (!maker) refuse(wanted);
  return std::make_unique<CheckedPolicy>(std::string(wanted), maker(context), rule_of(eviction));
}

}  // namespace quadriga
