// SPDX-License-Identifier: BSD-3-Clause
// src/device/kinds.h: the table of the kinds of devices.
//
// A new kind is a folder beside this file and a row of the table in kinds.cpp. Its DeviceKind is
// the row's number, which authors of variants get from device_kind().
#pragma once

#include <quadriga/machine.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga {

class Backend;
struct BackendOptions;

struct KindOfDevice {
  DeviceKind kind = {};    ///< The row's number, which add_kind() gives.
  std::string name;        ///< In device lists, descriptions and traces: "cuda".
  std::string rates = {};  ///< Column of kernel times of a described device that names none.
  /// The kind whose variants its devices run; its own unless stated. Variants of `cpu` are plain
  /// functions that have ended when they return; those of others queue on Arguments::stream.
  std::optional<DeviceKind> runs = {};
  /// Its devices on this computer and what joins them. Null: lists and descriptions say.
  std::function<Machine()> discover = {};
  /// Why discover() finds none; empty if it finds some.
  std::function<std::string()> absence = {};
  /// Drives a machine whose devices are all of this kind.
  std::function<std::unique_ptr<Backend>(const Machine&, const BackendOptions&)> make = {};
};

/// Adds a row, for good; gives its number. Any thread.
/// Errors: invalid_argument if the name is empty, taken or a device list's own word, nothing makes
/// a backend, or the table is full.
DeviceKind add_kind(KindOfDevice kind);

/// The row of a kind; null if nobody added it. Stays valid. Any thread.
const KindOfDevice* find_kind(DeviceKind kind) noexcept;
const KindOfDevice* find_kind(std::string_view name) noexcept;
/// The rows' numbers, in order. Any thread.
std::vector<DeviceKind> all_kinds();

/// KindOfDevice::runs by number, for all that a DeviceKind can be.
extern std::array<std::atomic<DeviceKind>, 256> variants_by_kind;

/// The kind whose variants devices of a kind run. Any thread.
inline DeviceKind variants_of(DeviceKind kind) noexcept {
  return variants_by_kind[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
}

}  // namespace quadriga
