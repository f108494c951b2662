// SPDX-License-Identifier: BSD-3-Clause
// tests/model/linalg/random_calls_test.cpp: random calls on random engines give the bits of one
// core.
#include "model/linalg/random_calls.h"
#include "sanitized.h"

namespace quadriga::linalg::testing {
namespace {

constexpr std::uint64_t calls = is_sanitized ? 100 : 250;

TEST(RandomCalls, GiveTheBitsOfOneCore) {
  const auto reference = make_engine("cpu:1");
  std::unique_ptr<Engine> engines[] = {
      make_engine("cpu:2"),
      make_engine("emulated:2,memory=20KiB"),
      make_engine("emulated:3,memory=25KiB,peer=off", "steal"),
      make_engine("virtual:emulated:4,memory=20KiB"),
      make_engine("virtual:emulated:3,memory=200KiB,peer=off"),
  };
  for (std::uint64_t seed = 1; seed <= calls; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Array expected = Call(seed).run(*reference);
    Engine& engine = *engines[seed % std::size(engines)];
    ASSERT_TRUE(same_result(expected, Call(seed).run(engine))) << engine.options().devices;
  }
}

}  // namespace
}  // namespace quadriga::linalg::testing
