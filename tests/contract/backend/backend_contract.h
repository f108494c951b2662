// SPDX-License-Identifier: BSD-3-Clause
// tests/contract/backend/backend_contract.h: what the contract tests run on.
//
// A backend joins the suite with one line in all_backends() or memory_backends().
#pragma once

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <chrono>
#include <deque>
#include <functional>
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
};

inline void PrintTo(const BackendCase& backend, std::ostream* out) { *out << backend.name; }

inline std::string case_name(const testing::TestParamInfo<BackendCase>& info) {
  return info.param.name;
}

// Backends whose devices have memory of their own.
inline std::vector<BackendCase> memory_backends() {
  const auto emulated = [](Machine machine) { return make_emulated_backend(std::move(machine)); };
  const auto virtual_clock = [](Machine machine) {
    return make_virtual_backend(std::move(machine), {.compute = true, .noise = 0.1, .seed = 1});
  };
  const auto protecting = [](Machine machine) {
    return make_virtual_backend(std::move(machine), {.compute = true, .protect = true});
  };
  const auto faultless = [](Machine machine) {
    return make_faulty_backend(make_emulated_backend(std::move(machine)), {});
  };
  return {{"emulated", DeviceKind::emulated, emulated},
          {"virtual", DeviceKind::emulated, virtual_clock},
          {"protected", DeviceKind::emulated, protecting},
          {"faultless", DeviceKind::emulated, faultless}};
}

inline std::vector<BackendCase> all_backends() {
  std::vector<BackendCase> cases = memory_backends();
  cases.push_back({"cpu", DeviceKind::cpu,
                   [](Machine machine) { return make_cpu_backend(std::move(machine)); }});
  cases.push_back({"virtual_cpu", DeviceKind::cpu,
                   [](Machine machine) { return make_virtual_backend(std::move(machine)); }});
  return cases;
}

constexpr std::size_t device_bytes = std::size_t{1} << 20;

// Two devices; those with memory have links to the host, and from the first to the second.
inline Machine contract_machine(DeviceKind kind, double bytes_per_second = 4e9) {
  Machine machine;
  machine.name = "contract";
  for (int i = 0; i < 2; ++i) {
    Device device;
    device.name = "device" + std::to_string(i);
    device.kind = kind;
    device.compute_streams = 2;
    device.rates = "any";
    device.cores = kind == DeviceKind::cpu ? 2 : 0;
    device.space = static_cast<SpaceId>(kind == DeviceKind::cpu ? 0 : i + 1);
    device.memory_bytes = kind == DeviceKind::cpu ? 0 : device_bytes;
    machine.devices.push_back(device);
  }
  machine.kernels["k"]["any"] = {{1, 1e-3}};
  if (kind == DeviceKind::cpu) return machine;
  for (const char* name : {"in0", "out0", "in1", "out1", "peer"}) {
    machine.links.push_back({name, bytes_per_second, 1e-6});
  }
  machine.routes = {{0, 1, {0}}, {1, 0, {1}}, {0, 2, {2}}, {2, 0, {3}}, {1, 2, {4}}};
  return machine;
}

class BackendTest : public testing::TestWithParam<BackendCase> {
 protected:
  BackendTest() { start(contract_machine(GetParam().kind)); }

  void start(Machine machine) { backend_ = GetParam().make(std::move(machine)); }

  // Queues a kernel that takes some milliseconds by the virtual clock's table.
  Event launch(StreamId stream, Kernel kernel, double milliseconds = 1,
               std::span<const View> operands = {}) {
    kernels_.push_back(std::move(kernel));
    Launch launch;
    launch.kernel = &kernels_.back();
    launch.arguments.operands = operands;
    launch.cost = {"k", 1, milliseconds};
    launch.name = "contract";
    return backend_->launch(stream, launch);
  }
  // One that takes them by the real clock too.
  Event launch_sleep(StreamId stream, int milliseconds) {
    const bool is_virtual = backend_->is_virtual();
    return launch(
        stream,
        [milliseconds, is_virtual](const Arguments&) {
          if (!is_virtual) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        },
        milliseconds);
  }
  std::vector<Completion> collect(std::size_t count) {
    std::vector<Completion> all;
    while (all.size() < count) {
      Completion some[3];
      const std::size_t got = backend_->next_completion(some, never);
      all.insert(all.end(), some, some + got);
    }
    return all;
  }
  StreamId compute(DeviceId device) { return backend_->create_stream(device, StreamKind::compute); }

  std::deque<Kernel> kernels_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace quadriga
