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

std::unique_ptr<CheckedPolicy> make_policy(std::string_view name, const PolicyContext& context) {
  const std::string_view wanted = name.empty() ? "affinity" : name;
  PolicyMaker maker;
  {
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    const auto found = all.entries.find(wanted);
    if (found != all.entries.end()) maker = found->second.make;
  }
  if (!maker) refuse(wanted);
  return std::make_unique<CheckedPolicy>(std::string(wanted), maker(context));
}

}  // namespace quadriga
