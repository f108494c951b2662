// SPDX-License-Identifier: BSD-3-Clause
// src/device/preparation.cpp: a variant for each kind.
//
// Invariant: `mutex` guards the map.
#include "device/preparation.h"

#include <map>
#include <mutex>
#include <utility>

namespace quadriga {
namespace {

struct Preparations {
  std::mutex mutex;
  std::map<DeviceKind, Kernel> of_kind;
};

// Made by whoever comes first while the program starts; never destroyed.
Preparations& preparations() {
  static Preparations& all = *new Preparations;
  return all;
}

}  // namespace

void set_preparation(DeviceKind kind, Kernel prepare) {
  Preparations& all = preparations();
  const std::lock_guard lock(all.mutex);
  if (prepare)
    all.of_kind[kind] = std::move(prepare);
  else
    all.of_kind.erase(kind);
}

std::optional<Kernel> preparation(DeviceKind kind) {
  Preparations& all = preparations();
  const std::lock_guard lock(all.mutex);
  const auto found = all.of_kind.find(kind);
  if (found == all.of_kind.end()) return {};
  return found->second;
}

}  // namespace quadriga
