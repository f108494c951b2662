// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/backend/backend_contract.h: what the contract tests run on.
//
// A backend joins the suite with one line in cases.cpp, one that needs a GPU in tests/gpu.
#pragma once

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "device/factory.h"

namespace quadriga {

struct BackendCase {
  std::string name;
  DeviceKind kind = DeviceKind::emulated;
  std::function<std::unique_ptr<Backend>(Machine)> make;
  /// Makes a variant for this kind of device of a body that runs on the host; none: it is one.
  std::function<Kernel(Kernel body)> adapt = {};
  /// A variant that takes so many milliseconds; none: a body that sleeps.
  std::function<Kernel(int milliseconds)> sleep = {};
  /// Links have the rates that the machine states, and what is queued can be dropped.
  bool emulates = true;
  /// Makes one whose memory other processes may open; none: there is no such backend.
  std::function<std::unique_ptr<Backend>(Machine)> make_sharing = {};
  /// Why this backend can't run here; empty if it can.
  std::string absence = {};
};

inline void PrintTo(const BackendCase& backend, std::ostream* out) { *out << backend.name; }

inline std::string case_name(const testing::TestParamInfo<BackendCase>& info) {
  return info.param.name;
}

// Backends whose devices have memory of their own, and all.
std::vector<BackendCase> memory_backends();
std::vector<BackendCase> all_backends();

constexpr std::size_t device_bytes = std::size_t{1} << 20;

// Devices; those with memory have links to the host, and from the first to the second.
inline Machine contract_machine(DeviceKind kind, double bytes_per_second = 4e9, int devices = 2) {
  Machine machine;
  machine.name = "contract";
  machine.kernels["k"]["any"] = {{1, 1e-3}};
  for (int i = 0; i < devices; ++i) {
    Device device;
    device.name = "device" + std::to_string(i);
    device.kind = kind;
    device.compute_streams = 2;
    device.rates = "any";
    device.cores = kind == DeviceKind::cpu ? 2 : 0;
    device.space = static_cast<SpaceId>(kind == DeviceKind::cpu ? 0 : i + 1);
    device.memory_bytes = kind == DeviceKind::cpu ? 0 : device_bytes;
    machine.devices.push_back(device);
    if (kind == DeviceKind::cpu) continue;
    machine.links.push_back({"in" + std::to_string(i), bytes_per_second, 1e-6});
    machine.links.push_back({"out" + std::to_string(i), bytes_per_second, 1e-6});
    machine.routes.push_back({host_space, device.space, {2 * i}});
    machine.routes.push_back({device.space, host_space, {2 * i + 1}});
  }
  if (kind == DeviceKind::cpu) return machine;
  machine.links.push_back({"peer", bytes_per_second, 1e-6});
  machine.routes.push_back({1, 2, {2 * devices}});
  return machine;
}

// The same with every other device replaced by cores.
inline Machine mixed_machine(Machine machine) {
  for (std::size_t i = 1; i < machine.devices.size(); i += 2) {
    Device& device = machine.devices[i];
    std::erase_if(machine.routes, [&device](const Route& route) {
      return route.from == device.space || route.to == device.space;
    });
    device.kind = DeviceKind::cpu;
    device.cores = 2;
    device.space = host_space;
    device.memory_bytes = 0;
  }
  return machine;
}

class BackendTest : public testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    if (!GetParam().absence.empty()) GTEST_SKIP() << GetParam().absence;
    start(contract_machine(GetParam().kind));
  }

  void start(Machine machine) { backend_ = GetParam().make(std::move(machine)); }

  // Queues a kernel that takes some milliseconds by the virtual clock's table.
  Event launch(StreamId stream, Kernel kernel, double milliseconds = 1,
               std::span<const View> operands = {}) {
    return launch_variant(stream, GetParam().adapt ? GetParam().adapt(kernel) : kernel,
                          milliseconds, operands);
  }
  Event launch_variant(StreamId stream, Kernel variant, double milliseconds,
                       std::span<const View> operands = {}, bool waits = false) {
    kernels_.push_back(std::move(variant));
    Launch launch;
    launch.kernel = &kernels_.back();
    launch.arguments.operands = operands;
    launch.cost = {"k", 1, milliseconds};
    launch.name = "contract";
    launch.waits = waits;
    return backend_->launch(stream, launch);
  }
  // One whose variant may wait before it does, or queues, what it has to.
  Event launch_waiting(StreamId stream, Kernel variant) {
    return launch_variant(stream, std::move(variant), 1, {}, true);
  }
  // One that takes them by the real clock too.
  Event launch_sleep(StreamId stream, int milliseconds) {
    if (GetParam().sleep)
      return launch_variant(stream, GetParam().sleep(milliseconds), milliseconds);
    const bool is_virtual = backend_->is_virtual();
    return launch(
        stream,
        [milliseconds, is_virtual](const Arguments&) {
          if (!is_virtual) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        },
        milliseconds);
  }
  // One that runs until something holds, however late its own or another thread runs; it takes the
  // milliseconds where the clock is virtual or a variant can only sleep.
  Event launch_until(StreamId stream, int milliseconds, std::function<bool()> holds) {
    if (GetParam().sleep || backend_->is_virtual()) return launch_sleep(stream, milliseconds);
    return launch(stream, [holds = std::move(holds)](const Arguments&) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
      while (!holds() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  std::vector<Completion> collect(std::size_t count) {
    std::vector<Completion> all;
    while (all.size() < count) {
      Completion some[3];
      const std::size_t most = std::min(std::size(some), count - all.size());
      const std::size_t got = backend_->next_completion({some, most}, never);
      all.insert(all.end(), some, some + got);
    }
    return all;
  }
  StreamId compute(DeviceId device) { return backend_->create_stream(device, StreamKind::compute); }

  std::deque<Kernel> kernels_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace quadriga
