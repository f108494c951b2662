// SPDX-License-Identifier: BSD-3-Clause
// src/device/kinds.cpp: the table of the kinds of devices.
//
// Invariants
//   1. `mutex` guards the length of `rows`; rows stay where they are and as they are.
//   2. A row's entry of `variants_by_kind` is written before its number is known to anybody; those
//      of the built-in rows by whoever asks first, at the latest when the program starts.
#include "device/kinds.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "device/cuda/cuda_backend.h"
#include "device/factory.h"
#include "device/file/file_backend.h"

namespace quadriga {

constinit std::array<std::atomic<DeviceKind>, 256> variants_by_kind{};

namespace {

/// In the order of DeviceKind's named values.
std::vector<KindOfDevice> built_in() {
  return {
      {.name = "cpu",
       .rates = "cpu",
       .make = [](const Machine& machine,
                  const BackendOptions&) { return make_cpu_backend(machine); }},
      {.name = "emulated",
       .rates = "emulated",
       .runs = DeviceKind::cpu,
       .properties = {.host_reaches_memory = true, .messages = MessageMemory::of_machine},
       .make =
           [](const Machine& machine, const BackendOptions& options) {
             return make_emulated_backend(machine, options.emulated_options);
           }},
      {.name = "cuda",
       .rates = "gpu",
       .properties = {.runs_warps = true, .records = true, .messages = MessageMemory::of_process},
       .discover = discover_cuda,
       .absence = cuda_absence,
       .make = [](const Machine& machine,
                  const BackendOptions&) { return make_cuda_backend(machine); }},
      {.name = "file",
       .properties = {.only_stores = true},
       .make = [](const Machine& machine,
                  const BackendOptions&) { return make_file_backend(machine); }},
  };
}

class Table {
 public:
  Table() {
    for (KindOfDevice& each : built_in()) add(std::move(each));
  }

  DeviceKind add(KindOfDevice kind) {
    const std::lock_guard lock(mutex_);
    require(rows_.size() < variants_by_kind.size(), "add_kind(): the table of kinds is full");
    require(find(kind.name) == nullptr,
            fmt::format("add_kind(): there is a kind '{}' already", kind.name));
    const auto number = static_cast<DeviceKind>(rows_.size());
    kind.kind = number;
    variants_by_kind[rows_.size()].store(kind.runs.value_or(number), std::memory_order_relaxed);
    rows_.push_back(std::move(kind));
    return number;
  }
  const KindOfDevice* at(DeviceKind kind) {
    const std::lock_guard lock(mutex_);
    const auto number = static_cast<std::size_t>(kind);
    return number < rows_.size() ? &rows_[number] : nullptr;
  }
  const KindOfDevice* named(std::string_view name) {
    const std::lock_guard lock(mutex_);
    return find(name);
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return rows_.size();
  }

 private:
  const KindOfDevice* find(std::string_view name) const {
    const auto found = std::ranges::find(rows_, name, &KindOfDevice::name);
    return found == rows_.end() ? nullptr : &*found;
  }

  std::mutex mutex_;
  std::deque<KindOfDevice> rows_;
};

Table& table() {
  static Table all;
  return all;
}

[[maybe_unused]] const Table& filled = table();

}  // namespace

DeviceKind add_kind(KindOfDevice kind) {
  require(!kind.name.empty() && kind.name.find_first_of(":;,= ") == std::string::npos,
          fmt::format("add_kind(): '{}' is not a name for a device list", kind.name));
  for (const std::string_view word : {"auto", "gpu", "host", "machine"})
    require(kind.name != word, fmt::format("add_kind(): '{}' means something else", word));
  require(kind.make != nullptr, fmt::format("add_kind(): '{}' makes no backend", kind.name));
  return table().add(std::move(kind));
}

const KindOfDevice* find_kind(DeviceKind kind) noexcept { return table().at(kind); }
const KindOfDevice* find_kind(std::string_view name) noexcept { return table().named(name); }

const KindProperties& properties_of(DeviceKind kind) noexcept {
  static const KindProperties nothing;
  const KindOfDevice* const found = find_kind(kind);
  return found ? found->properties : nothing;
}

bool is_accelerator(DeviceKind kind) noexcept {
  return kind != DeviceKind::cpu && !properties_of(kind).only_stores;
}

std::vector<DeviceKind> all_kinds() {
  std::vector<DeviceKind> kinds(table().size());
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<DeviceKind>(i);
  return kinds;
}

std::string_view name(DeviceKind kind) noexcept {
  const KindOfDevice* const found = find_kind(kind);
  return found ? std::string_view(found->name) : "unknown";
}

DeviceKind device_kind(std::string_view name) {
  if (const KindOfDevice* const found = find_kind(name)) return found->kind;
  std::string known;
  for (const DeviceKind each : all_kinds())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", quadriga::name(each));
  fail(Errc::invalid_argument, fmt::format("no kind of device '{}'; known are {}", name, known));
}

}  // namespace quadriga
