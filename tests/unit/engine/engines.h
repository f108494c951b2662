// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/engines.h: the ways to run tasks, for tests that hold for all of them.
#pragma once

#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine_access.h"
#include "sanitized.h"

namespace quadriga {

/// Under the virtual clock, devices of kind cuda run functions of the host.
enum class Where { host, emulated, virtual_clock, virtual_gpus };

inline bool is_virtual(Where where) {
  return where == Where::virtual_clock || where == Where::virtual_gpus;
}

inline std::string where_name(const testing::TestParamInfo<Where>& info) {
  constexpr const char* names[] = {"Host", "Emulated", "VirtualClock", "VirtualGpus"};
  return names[static_cast<int>(info.param)];
}

/// To sanitizers, a virtual clock is as good as another one.
inline auto every_engine() {
  std::vector<Where> all{Where::host, Where::emulated, Where::virtual_clock};
  if (!is_sanitized) all.push_back(Where::virtual_gpus);
  return testing::ValuesIn(all);
}

inline WrappedOptions options_for(Where where) {
  WrappedOptions options;
  options.devices = where == Where::host ? "cpu:2" : "emulated:2,memory=1MiB,peer=4GB/s;cpu:1";
  if (!is_virtual(where)) return options;
  options.virtual_clock = true;
  options.machine = Machine::parse(options.devices);
  for (const char* const rates : {"emulated", "cpu", ""})
    options.machine->kernels["unit"][rates][1] = 1e-5;
  for (Device& device : options.machine->devices)
    if (where == Where::virtual_gpus && device.kind == DeviceKind::emulated)
      device.kind = DeviceKind::cuda;
  return options;
}

/// Every wait of these tests: what takes longer hangs.
constexpr double patience = 300;

/// Tests that hold for all engines. Tiles hold eight doubles.
class EngineTest : public testing::TestWithParam<Where> {
 protected:
  using Body = std::function<void(const Arguments&)>;

  Engine& engine() {
    if (!engine_) engine_ = EngineAccess::make_unique(options_for(GetParam()));
    return *engine_;
  }
  void make(const std::function<void(WrappedOptions&)>& change) {
    WrappedOptions options = options_for(GetParam());
    change(options);
    engine_ = EngineAccess::make_unique(std::move(options));
  }
  /// Lives as long as the test.
  Codelet& codelet(std::string name, std::vector<Access> signature, Body body) {
    Codelet& made = codelets_.emplace_back();
    made.name = std::move(name);
    made.access = std::move(signature);
    made.cpu = std::move(body);
    if (GetParam() == Where::virtual_gpus) made.cuda = made.cpu;
    made.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
    return made;
  }
  /// Of which GPUs have no variant.
  Codelet& host_codelet(std::string name, std::vector<Access> signature, Body body) {
    Codelet& made = codelet(std::move(name), std::move(signature), std::move(body));
    made.cuda = nullptr;
    made.host_only = true;
    return made;
  }
  /// A codelet with one operand.
  Codelet& codelet(Access access, Body body) {
    return codelet(std::string(quadriga::name(access)), {access}, std::move(body));
  }
  /// What its first operand begins with is what its second then begins with.
  Codelet& copying() {
    return codelet("copy", {Access::read, Access::write},
                   [](const Arguments& a) { first(a, 1) = first(a, 0); });
  }
  Data tile(double value = 0) {
    std::array<double, 8>& home = homes_.emplace_back();
    home.fill(value);
    return engine().data(home.data(), 8, 1, 8, DType::float64);
  }
  /// What is at home of the i-th tile.
  double home(std::size_t i) const { return homes_[i][0]; }
  double& home_of(std::size_t i) { return homes_[i][0]; }
  void wait() { engine().wait(patience); }

  /// A task that runs until open() was called; the virtual clock stands still while a body runs,
  /// so there it returns at once.
  Codelet& gate(std::vector<Access> signature) {
    return codelet("gate", std::move(signature), [this](const Arguments&) {
      if (is_virtual(GetParam())) return;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(240);
      while (!open_.load() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  void open() { open_.store(true); }

  static double& first(const Arguments& arguments, std::size_t operand = 0) {
    return *arguments.operands[operand].as<double>();
  }

 private:
  std::atomic<bool> open_{false};
  std::deque<Codelet> codelets_;
  std::deque<std::array<double, 8>> homes_;
  std::unique_ptr<Engine> engine_;
};

/// What a call throws, in words.
template <class Call>
std::string failure_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Notes when bodies begin and end.
class Journal {
 public:
  struct Entry {
    int begin = -1;
    int end = -1;
  };
  explicit Journal(std::size_t tasks) : entries_(tasks) {}

  /// Runs `body` as the task of this number.
  template <class Body>
  void run(std::size_t task, Body&& body) {
    entries_[task].begin = next_.fetch_add(1);
    body();
    entries_[task].end = next_.fetch_add(1);
  }
  bool ran(std::size_t task) const { return entries_[task].end >= 0; }
  bool in_order(std::size_t before, std::size_t after) const {
    return ran(before) && ran(after) && entries_[before].end < entries_[after].begin;
  }
  bool apart(std::size_t a, std::size_t b) const { return in_order(a, b) || in_order(b, a); }

 private:
  std::atomic<int> next_{0};
  std::vector<Entry> entries_;
};

}  // namespace quadriga
