// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/overhead/overhead_test.cpp: what the runtime costs beside the work: calls of the
// allocator, resident memory, an idle engine's time.
//
// A program of its own, since it counts all that goes through operator new.
#include <gtest/gtest.h>
#include <quadriga/engine.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sanitized.h"

// Sanitizers have an allocator of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
std::atomic<std::size_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded ? rounded : alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}
}  // namespace

// Inlined, they look as if memory were freed that free() doesn't know.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace quadriga {
namespace {

/// A product's tiles: three operands a task, two read and one updated.
class Product {
 public:
  explicit Product(const EngineOptions& options) : engine_(options), homes_(3 * tiles * tiles) {
    codelet_.name = "nothing";
    codelet_.access = {Access::read, Access::read, Access::update};
    codelet_.cpu = [](const Arguments&) {};
    for (double& home : homes_) data_.push_back(engine_.data(&home, 1, 1, 1, DType::float64));
  }
  void run(int times) {
    for (int t = 0; t < times; ++t)
      for (std::size_t i = 0; i < tiles; ++i)
        for (std::size_t j = 0; j < tiles; ++j)
          for (std::size_t k = 0; k < tiles; ++k)
            engine_.submit(codelet_, {{data_[i * tiles + k], Access::read},
                                      {data_[tiles * tiles + k * tiles + j], Access::read},
                                      {data_[2 * tiles * tiles + i * tiles + j], Access::update}});
    engine_.wait(120);
  }
  static constexpr std::size_t tiles = 10;

 private:
  Engine engine_;
  Codelet codelet_;
  std::vector<double> homes_;
  std::vector<Data> data_;
};

EngineOptions on(std::string devices) {
  EngineOptions options;
  options.devices = std::move(devices);
  options.window = 1024;
  return options;
}

std::size_t resident_bytes() {
  long pages = 0;
  long resident = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<std::size_t>(resident) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(OverheadTest, TasksAllocateNothingInTheSteadyState) {
  Product product(on("cpu:2"));
  product.run(10);
  constexpr int times = 100;
  // The wait makes a few. A tile's list grows where more tasks read it at once than ever before:
  // some 1,200 times for all tiles, as soon as the window is full, and never again.
  std::size_t least = SIZE_MAX;
  for (int pass = 0; pass < 3; ++pass) {
    const std::size_t before = allocations.load();
    product.run(times);
    least = std::min(least, allocations.load() - before);
  }
  EXPECT_LT(least, times * 1000u / 100) << "for " << times * 1000 << " tasks";
}
#endif

TEST(OverheadTest, AMillionTasksTakeLittleMemory) {
  if (is_sanitized) GTEST_SKIP() << "sanitizers keep what was freed";
  const std::size_t before = resident_bytes();
  EngineOptions options = on("cpu:2");
  options.window = 0;  // as configured
  Product product(options);
  product.run(1000);
  EXPECT_LT(resident_bytes() - before, std::size_t{64} << 20);
}

TEST(OverheadTest, AnIdleEngineTakesNoTime) {
  if (is_sanitized) GTEST_SKIP() << "sanitizers take time of their own";
  for (const char* const devices : {"cpu:2", "emulated:2,memory=1MiB;cpu:1"}) {
    Product product(on(devices));
    product.run(1);
    constexpr double seconds = 0.5;
    // On a busy machine threads need a while before they sleep: a later period may show it first.
    double taken = 1;
    for (int period = 0; period < 8 && taken >= 0.01 * seconds; ++period) {
      const double before = processor_seconds();
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      taken = processor_seconds() - before;
    }
    EXPECT_LT(taken, 0.01 * seconds) << devices;
  }
}

constexpr double seconds = 0.5;

Codelet sleeping() {
  Codelet codelet{.name = "sleeping", .access = {Access::update}};
  codelet.cpu = [](const Arguments&) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  return codelet;
}

TEST(OverheadTest, WaitingForALongTaskTakesLittleTime) {
  if (is_sanitized) GTEST_SKIP() << "sanitizers take time of their own";
  for (const char* const devices : {"cpu:2", "emulated:2,memory=1MiB;cpu:1"}) {
    Engine engine(on(devices));
    const Codelet sleeps = sleeping();
    double home = 0;
    engine.submit(sleeps, {{engine.data(&home, 1, 1, 1, DType::float64), Access::update}});
    const double before = processor_seconds();
    engine.wait(60);
    EXPECT_LT(processor_seconds() - before, 0.1 * seconds) << devices;
  }
}

TEST(OverheadTest, WaitingForRoomInTheWindowTakesLittleTime) {
  if (is_sanitized) GTEST_SKIP() << "sanitizers take time of their own";
  for (const char* const devices : {"cpu:2", "emulated:2,memory=1MiB;cpu:1"}) {
    EngineOptions options = on(devices);
    options.window = 2;
    Engine engine(options);
    const Codelet sleeps = sleeping();
    double home = 0;
    const Data data = engine.data(&home, 1, 1, 1, DType::float64);
    const double before = processor_seconds();
    constexpr int waits = 2;  // as many tasks end before the last one has room
    for (int task = 0; task < 2 + waits; ++task) engine.submit(sleeps, {{data, Access::update}});
    EXPECT_LT(processor_seconds() - before, 0.1 * waits * seconds) << devices;
    engine.wait(60);
  }
}

}  // namespace
}  // namespace quadriga
