// SPDX-License-Identifier: BSD-3-Clause
// src/device/kinds.h: the table of the kinds of devices.
//
// A new kind is a folder beside this file and a row of the table in kinds.cpp. Its DeviceKind is
// the row's number, which authors of variants get from device_kind(). Its devices run the linear
// algebra if it has a port of the tile kernels (linalg/kernels/stream_ports.h). Other rooms ask for
// what a row says, never for a kind by its name (tools/check_layers); but the host's cores are
// `cpu`.
#pragma once

#include <quadriga/machine.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga {

class Backend;
struct BackendOptions;

/// Who makes the memory in which messages of a kind's devices lie (message/ports.h).
enum class MessageMemory : std::uint8_t {
  none,        ///< Nobody: messages go by way of the host.
  of_machine,  ///< A port that opens the devices of a described machine.
  of_process,  ///< The one port of a device of this computer, which an address tells.
};

/// What is asked of the devices of a kind, instead of which kind it is.
struct KindProperties {
  /// Their memory only stores tiles: no task runs there.
  bool only_stores = false;
  /// The host's instructions reach their memory, whose content is there when a kernel returns.
  bool host_reaches_memory = false;
  /// Neighbouring threads of a kernel read neighbouring rows: warps.
  bool runs_warps = false;
  /// One launch of what was recorded costs the host less than queueing it (device/recorded.h).
  bool records = false;
  MessageMemory messages = MessageMemory::none;
};

struct KindOfDevice {
  DeviceKind kind = {};    ///< The row's number, which add_kind() gives.
  std::string name;        ///< In device lists, descriptions and traces: "cuda".
  std::string rates = {};  ///< Column of kernel times of a described device that names none.
  /// The kind whose variants its devices run; its own unless stated. Variants of `cpu` are plain
  /// functions that have ended when they return; those of others queue on Arguments::stream.
  std::optional<DeviceKind> runs = {};
  KindProperties properties = {};
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
/// What its row says; of a kind that nobody added, nothing. Stays valid. Any thread.
const KindProperties& properties_of(DeviceKind kind) noexcept;
/// Runs tasks, and isn't the host's cores. Any thread.
bool is_accelerator(DeviceKind kind) noexcept;
/// The rows' numbers, in order. Any thread.
std::vector<DeviceKind> all_kinds();

/// KindOfDevice::runs by number, for all that a DeviceKind can be.
extern std::array<std::atomic<DeviceKind>, 256> variants_by_kind;

/// The kind whose variants devices of a kind run. Any thread.
inline DeviceKind variants_of(DeviceKind kind) noexcept {
  return variants_by_kind[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
}

}  // namespace quadriga
