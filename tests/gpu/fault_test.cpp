// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/fault_test.cpp: a kernel that writes where no memory is. It ends CUDA's work in the
// whole process, so each test has a process of its own.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "device/cuda/cuda_backend.h"
#include "gpu/sleep.h"

namespace quadriga {
namespace {

class FaultDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

[[noreturn]] void leave(bool good, const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(good ? 0 : 1);
}

bool says_device_lost(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const Error& cause) {
    return cause.code() == Errc::device_lost;
  }
  return false;
}

void run_backend() {
  Machine machine = discover_cuda();
  machine.devices.front().memory_bytes = std::size_t{64} << 20;
  auto backend = make_cuda_backend(machine);
  const StreamId first = backend->create_stream(0, StreamKind::compute);
  const StreamId second = backend->create_stream(0, StreamKind::compute);
  const Kernel fault = [](const Arguments& call) { queue_fault(call.stream); };
  const Kernel sleep = [](const Arguments& call) { queue_sleep(call.stream, 1); };
  Launch launch;
  launch.name = "test";
  launch.kernel = &fault;
  const Event bad = backend->launch(first, launch);
  launch.kernel = &sleep;
  backend->wait(second, bad);
  backend->launch(second, launch);
  std::size_t lost = 0;
  for (std::size_t got = 0; got < 2;) {
    Completion ended[2];
    const std::size_t count = backend->next_completion(ended, never);
    for (std::size_t i = 0; i < count; ++i) lost += says_device_lost(ended[i].error) ? 1 : 0;
    got += count;
  }
  const bool refuses = backend->allocate(0, 4096) == nullptr;
  backend->launch(second, launch);
  Completion late;
  while (backend->next_completion({&late, 1}, never) == 0) continue;
  const bool stays_lost = says_device_lost(late.error);
  backend.reset();
  leave(lost == 2 && refuses && stays_lost, "the backend has gone");
}

TEST_F(FaultDeathTest, WhatIsQueuedOnTheDeviceEndsWithItsLoss) {
  EXPECT_EXIT(run_backend(), testing::ExitedWithCode(0), "the backend has gone");
}

void run_engine() {
  EngineOptions options;
  options.machine = discover_cuda();
  options.machine->devices.front().memory_bytes = std::size_t{64} << 20;
  Codelet codelet;
  codelet.name = "careless";
  codelet.access = {Access::update};
  codelet.cuda = [](const Arguments& call) { queue_fault(call.stream); };
  std::vector<double> values(100, 1.5);
  bool named = false;
  {
    Engine engine(options);
    const Data data = engine.data(values.data(), 100, 1, 100, DType::float64);
    engine.submit(codelet, {{data, Access::update}});
    try {
      engine.wait(300);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      named = error.code() == Errc::device_lost &&
              std::string(error.what()).find("careless") != std::string::npos;
    }
  }
  leave(named && values == std::vector<double>(100, 1.5), "the engine has gone");
}

TEST_F(FaultDeathTest, TheTaskIsNamedAndTheEngineEnds) {
  EXPECT_EXIT(run_engine(), testing::ExitedWithCode(0), "the engine has gone");
}

}  // namespace
}  // namespace quadriga
