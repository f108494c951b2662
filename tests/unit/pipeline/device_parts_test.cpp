// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/device_parts_test.cpp: results of all chunks, in parts on devices.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/pipeline.h>

#include <numeric>

#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

/// Adds a chunk's sum and its length.
Codelet adding() {
  Codelet add;
  add.name = "add";
  add.access = {Access::read, Access::update};
  add.cpu = [](const Arguments& a) {
    const auto* const x = a.operands[0].as<double>();
    auto* const sums = a.operands[1].as<double>();
    sums[0] = std::accumulate(x, x + a.operands[0].rows, sums[0]);
    sums[1] += static_cast<double>(a.operands[0].rows);
  };
  add.cost = [](const Arguments&) { return Cost::of_seconds(1e-5); };
  return add;
}

FieldShape two(const Chunk&) { return {2, 1, DType::float64}; }

StreamReduction sums() {
  StreamReduction made;
  made.combine = [](const View& into, const View& part) {
    for (std::int64_t i = 0; i < into.rows; ++i) into.as<double>()[i] += part.as<double>()[i];
  };
  return made;
}

class DevicePartsTest : public FlowTest {
 protected:
  const Codelet add_ = adding();
};

TEST_P(DevicePartsTest, ChunksAddUpOnTheirDevicesAndComeHomeOnce) {
  const std::vector<std::int64_t> lengths = random_lengths(200, 7);
  Pipeline pipeline(options());
  pipeline.source(numbers(lengths))
      .kernel(double_, {reads("x"), temporary("y", like_x)})
      .kernel(add_, {reads("y"), reduces("sums", two, sums())});
  EXPECT_EQ(pipeline.run().chunks, 200u);
  double sum = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    sum += 2.0 * static_cast<double>(i) * static_cast<double>(lengths[i]);
  const View found = pipeline.reduced("sums");
  ASSERT_EQ(found.rows, 2);
  EXPECT_EQ(found.as<double>()[0], sum);
  EXPECT_EQ(found.as<double>()[1],
            static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})));
  if (GetParam() == Where::host) return;
  std::uint64_t home = 0;
  for (const auto& link : engine_->counters().links)
    if (link.target == host_space) home += link.bytes;
  EXPECT_LE(home, 2u * 16u) << "a part a device, and nothing else";
}

TEST_P(DevicePartsTest, WhatFailedBeforeIsNotInTheResult) {
  Codelet picky = double_;
  picky.cpu = [](const Arguments& a) {
    if (a.operands[0].as<double>()[0] == 3) throw std::runtime_error("three");
    std::fill_n(a.operands[1].as<double>(), a.operands[1].rows, 1.0);
  };
  PipelineOptions given = options();
  given.on_error = OnError::skip;
  Pipeline pipeline(given);
  pipeline.source(numbers(std::vector<std::int64_t>(20, 10)))
      .kernel(picky, {reads("x"), writes("y", like_x)})
      .kernel(add_, {reads("y"), reduces("sums", two, sums())});
  EXPECT_EQ(pipeline.run().chunks, 19u);
  EXPECT_EQ(pipeline.reduced("sums").as<double>()[1], 190.0);
}

TEST_P(DevicePartsTest, AResultHasOneShape) {
  Pipeline pipeline(options());
  pipeline.source(numbers({3, 3, 4})).kernel(add_, {reads("x"), reduces("sums", like_x, sums())});
  try {
    pipeline.run();
    FAIL() << "a chunk's result had another shape";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("gives a result 'sums'"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(pipeline.reduced("sums"), Error);
}

INSTANTIATE_TEST_SUITE_P(Engines, DevicePartsTest, all_engines(), engine_name);

}  // namespace
}  // namespace quadriga
