// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/full_device_test.cpp: devices that give less memory than they were asked for.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <string>

#include "base/log.h"
#include "device/factory.h"
#include "engine/engine_access.h"

namespace quadriga {
namespace {

/// An engine whose device refuses the first requests for memory.
WrappedOptions refusing(std::vector<std::uint64_t> requests) {
  WrappedOptions options;
  options.devices = "emulated:1,memory=1MiB";
  options.wrap_backend = [requests](std::unique_ptr<Backend> backend) {
    return make_faulty_backend(std::move(backend), {.allocations = requests});
  };
  return options;
}

TEST(FullDevice, GivesWhatItHasAndPlansKnow) {
  std::string said;
  set_log_sink([&said](LogLevel, std::string_view message) { said += message; });
  {
    const Engine engine(EngineAccess::make(refusing({1, 2})));
    const std::size_t granted = engine.machine().devices.front().memory_bytes;
    EXPECT_LT(granted, std::size_t{1} << 20);
    EXPECT_GE(granted, std::size_t{1} << 19);
  }
  set_log_sink({});
  EXPECT_NE(said.find("of the 1 MiB that it was asked for"), std::string::npos) << said;
}

TEST(FullDevice, WithoutAnyMemoryIsNamed) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 1; i < 100; ++i) all.push_back(i);
  try {
    const Engine engine(EngineAccess::make(refusing(all)));
    FAIL() << "made an engine on a device without memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unavailable);
    EXPECT_NE(std::string(error.what()).find("emulated0"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace quadriga
