// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/kept_trace_test.cpp: traces of runs without an end keep their last seconds.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/config.h"
#include "engine/recorder.h"

namespace quadriga {
namespace {

using Json = nlohmann::json;

constexpr double task_seconds = 0.02;

/// Of as many tasks, each behind the one before, on data that come and go.
class KeptTrace : public testing::Test {
 protected:
  ~KeptTrace() override { Config::global().set("trace_seconds", "0"); }
  Json trace_of(int tasks, int kept_seconds) {
    Config::global().set("trace_seconds", std::to_string(kept_seconds));
    EngineOptions options;
    options.machine = Machine::parse("emulated:1,memory=1MiB");
    options.virtual_clock = true;
    options.trace = true;
    Engine engine(options);
    Codelet codelet{.name = "step", .access = {Access::update}, .cpu = [](const Arguments&) {}};
    codelet.cost = [](const Arguments&) { return Cost::of_seconds(task_seconds); };
    std::vector<double> memory(1024);
    for (int i = 0; i < tasks; ++i) {
      const Data data = engine.data(memory.data(), 8 + i % 100, 1, 1024, DType::float64);
      engine.submit(codelet, {{data, Access::update}});
      engine.wait();
      engine.remove(data);
    }
    EXPECT_EQ(engine.counters().devices[0].tasks, static_cast<std::uint64_t>(tasks));
    text_ = engine.trace_json();
    return Json::parse(text_);
  }
  std::string text_;
};

TEST_F(KeptTrace, HasTheLastSecondsAndCountersOfThese) {
  const Json trace = trace_of(500, 2);
  const Json& told = trace["quadriga"];
  EXPECT_EQ(told["kept_seconds"], 2.0);
  EXPECT_NEAR(told["seconds"].get<double>(), 2, 2 * task_seconds);
  std::map<std::string, std::uint64_t> events;
  std::uint64_t bytes = 0;
  for (const Json& event : trace["traceEvents"]) {
    const auto kind = event.value("cat", std::string());
    ++events[kind];
    if (kind == "copy") bytes += event["args"]["bytes"].get<std::uint64_t>();
    EXPECT_GE(event.value("ts", 0.0), 0);
  }
  EXPECT_GE(events["kernel"], 98u);
  EXPECT_LE(events["kernel"], 102u);
  const Json& counters = told["counters"];
  EXPECT_EQ(counters["devices"][0]["tasks"], events["kernel"]);
  EXPECT_EQ(counters["devices"][0]["misses"], events["miss"]);
  EXPECT_NEAR(counters["devices"][0]["busy_seconds"]["compute"].get<double>(), 2, 2 * task_seconds);
  std::uint64_t counted = 0;
  for (const Json& link : counters["links"]) counted += link["bytes"].get<std::uint64_t>();
  EXPECT_EQ(counted, bytes);
  EXPECT_FALSE(told.contains("tasks"));
}

TEST(KeptMessages, AreThoseThatEndedWithin) {
  constexpr Nanoseconds second = 1'000'000'000;
  const Machine machine = Machine::parse("emulated:1,memory=1MiB");
  Recorder recorder(machine, true, 2 * second);
  const int lane = recorder.add_lane(0, StreamKind::compute, "kernels");
  for (int i = 1; i <= 10; ++i) {
    MessageEvent message;
    message.begin = (i - 1) * second;
    message.end = i * second;
    recorder.message(message);
  }
  recorder.mark(lane, Mark::hit, no_tile, 0, 10 * second);
  ASSERT_EQ(recorder.messages().size(), 3u);
  EXPECT_EQ(recorder.messages().front().end, 8 * second);
}

TEST_F(KeptTrace, IsNoLargerTheLongerTheRun) {
  trace_of(500, 2);
  const std::size_t few = text_.size();
  trace_of(4000, 2);
  EXPECT_LT(text_.size(), few + few / 4);
}

TEST_F(KeptTrace, OfARunThatIsShorterIsWhole) {
  const Json trace = trace_of(20, 10);
  EXPECT_FALSE(trace["quadriga"].contains("kept_seconds"));
  EXPECT_EQ(trace["quadriga"]["counters"]["devices"][0]["tasks"], 20);
}

TEST_F(KeptTrace, WithoutTheSettingHasAllWithTheGraph) {
  const Json trace = trace_of(300, 0);
  EXPECT_EQ(trace["quadriga"]["tasks"].size(), 300u);
}

}  // namespace
}  // namespace quadriga
