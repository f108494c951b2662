// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/gang_test.cpp: operations on streams of several devices that wait for each other.
#include <gtest/gtest.h>

#include "gpu/host_body.h"
#include "model/graph/random_gangs.h"

namespace quadriga {
namespace {

TEST(RandomGangs, OnStreamsOfCuda) {
  const Seeds seeds = test_seeds(400'000, 40);
  for (std::uint64_t i = 0; i < seeds.count; ++i)
    ASSERT_EQ(run_gangs(seeds.first + i, {.kind = DeviceKind::cuda, .adapter = on_stream}), "")
        << "replay with QUADRIGA_TEST_SEED";
}

}  // namespace
}  // namespace quadriga
