// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/renaming_engine.h: engines that rename, for tests of what they do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include "engine/on_host.h"
#include "unit/engine/engines.h"

namespace quadriga {

inline constexpr std::size_t bytes_of_tile = 8 * sizeof(double);

class RenamingEngine : public EngineTest {
 protected:
  void SetUp() override { rename(4 * bytes_of_tile); }
  void rename(std::size_t bytes) {
    make([&](WrappedOptions& options) { options.renaming_bytes = bytes; });
  }
  Codelet& setting(double value) {
    return codelet("set", {Access::write}, [value](const Arguments& a) {
      for (int i = 0; i < 8; ++i) a.operands[0].as<double>()[i] = value;
    });
  }
  Future set(const Data& data, double value) {
    return engine().submit(setting(value), {{data, Access::write}});
  }
  Future read(const Data& data, double& seen) {
    return engine().submit(codelet(Access::read, [&seen](const Arguments& a) { seen = first(a); }),
                           {{data, Access::read}});
  }
  /// An engine of one core with memory for one name.
  void rename_on_one_core() {
    make([](WrappedOptions& options) {
      options.devices = "cpu:1";
      options.renaming_bytes = bytes_of_tile;
    });
  }
  RenamingCounters counters() { return engine().counters().renaming; }
  /// Data at home with 1 whose newest content, 2, is in a name; all tasks have ended.
  Data renamed() {
    const Data x = tile(1);
    std::atomic<bool> ends{false};
    engine().submit(until(ends), {{x, Access::read}});
    if (GetParam() == Where::host) pause();  // else a worker may begin with the write
    const Future written = set(x, 2);
    end(ends);
    wait_for_end(engine(), written, patience);
    while (!is_virtual(GetParam()) && engine().counters().ended < 2) std::this_thread::yield();
    return x;
  }
  Codelet& until(std::atomic<bool>& flag) {
    return codelet("until", {Access::read}, [this, &flag](const Arguments&) {
      if (!is_virtual(GetParam())) flag.wait(false);
    });
  }
  static void end(std::atomic<bool>& flag) {
    flag = true;
    flag.notify_all();
  }
  /// Long enough for what should happen elsewhere; if it isn't, the test shows less.
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }
};

}  // namespace quadriga
