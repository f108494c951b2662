// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/flow_fixture.h: engines and stages for whole pipelines.
#pragma once

#include <gtest/gtest.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace quadriga {

enum class Where { host, emulated, virtual_clock };

class FlowTest : public testing::TestWithParam<Where> {
 protected:
  FlowTest() {
    EngineOptions options;
    options.devices = GetParam() == Where::host ? "cpu:2" : "emulated:2,memory=1MiB;cpu:1";
    if (GetParam() == Where::virtual_clock) {
      options.virtual_clock = true;
      options.machine = Machine::parse(options.devices);
      for (const char* const rates : {"emulated", "cpu", ""})
        options.machine->kernels["unit"][rates][1] = 1e-5;
    }
    engine_ = std::make_unique<Engine>(options);
    double_.name = "double";
    double_.access = {Access::read, Access::write};
    double_.cpu = [](const Arguments& a) {
      for (std::int64_t i = 0; i < a.operands[0].rows; ++i)
        a.operands[1].as<double>()[i] = 2 * a.operands[0].as<double>()[i];
    };
    double_.cost = [](const Arguments& a) {
      return Cost{"unit", 1, static_cast<double>(a.operands[0].rows) / 100};
    };
    increment_.name = "increment";
    increment_.access = {Access::update};
    increment_.cpu = [](const Arguments& a) {
      for (std::int64_t i = 0; i < a.operands[0].rows; ++i) a.operands[0].as<double>()[i] += 1;
    };
    increment_.cost = double_.cost;
  }

  PipelineOptions options() {
    PipelineOptions made;
    made.engine = engine_.get();
    return made;
  }
  /// Chunks "x" of these lengths, all elements the chunk's number.
  static Pipeline::Source numbers(std::vector<std::int64_t> lengths) {
    return [lengths = std::move(lengths)](Chunk& chunk) {
      if (chunk.number() >= lengths.size()) return false;
      const View view = chunk.add("x", lengths[chunk.number()], 1, DType::float64);
      std::fill_n(view.as<double>(), view.rows, static_cast<double>(chunk.number()));
      return true;
    };
  }
  static std::vector<std::int64_t> random_lengths(std::size_t count, std::uint64_t seed) {
    Random random(seed);
    std::vector<std::int64_t> lengths(count);
    for (std::int64_t& each : lengths) each = static_cast<std::int64_t>(1 + random.below(2000));
    return lengths;
  }
  static FieldShape like_x(const Chunk& chunk) { return {chunk["x"].rows, 1, DType::float64}; }

  std::unique_ptr<Engine> engine_;
  Codelet double_;
  Codelet increment_;
};

inline std::string engine_name(const testing::TestParamInfo<Where>& tested) {
  constexpr const char* names[] = {"Host", "Emulated", "VirtualClock"};
  return names[static_cast<int>(tested.param)];
}

inline auto all_engines() {
  return testing::Values(Where::host, Where::emulated, Where::virtual_clock);
}

}  // namespace quadriga
