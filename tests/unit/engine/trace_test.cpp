// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/trace_test.cpp: counters are what the trace's events add up to, and the head
// says what ran and how far it was from its bound.
#include <quadriga/engine.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

using Json = nlohmann::json;
using Span = std::pair<Nanoseconds, Nanoseconds>;

Nanoseconds nanoseconds(const Json& microseconds) {
  return static_cast<Nanoseconds>(microseconds.get<double>() * 1e3 + 0.5);
}

std::vector<Span> merged(std::vector<Span> spans) {
  std::ranges::sort(spans);
  std::vector<Span> out;
  for (const Span& span : spans)
    if (!out.empty() && span.first <= out.back().second)
      out.back().second = std::max(out.back().second, span.second);
    else
      out.push_back(span);
  return out;
}

Nanoseconds length(const std::vector<Span>& spans) {
  Nanoseconds sum = 0;
  for (const Span& span : merged(spans)) sum += span.second - span.first;
  return sum;
}

/// Time covered by both.
Nanoseconds common(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return length(a) + length(b) - length(both);
}

/// Of traced(): on the host reductions are made in place, elsewhere each of two devices combines.
std::size_t tasks_in(Where where) { return 2 * 60 + 6 * 5 + (where == Where::host ? 0 : 6 * 2); }

class TraceTest : public EngineTest {
 protected:
  /// Tasks of two and three operands on tiles that don't all fit, all modes.
  Json traced() {
    make([](EngineOptions& options) {
      options.trace = true;
      if (!options.machine) return;
      for (Device& device : options.machine->devices)
        if (device.memory_bytes) device.memory_bytes = 8192;
    });
    std::vector<Data> data;
    for (std::size_t i = 0; i < 6; ++i) {
      homes_.emplace_back(256, 1.0);
      data.push_back(engine().data(homes_.back().data(), 16, 16, 16, DType::float64));
    }
    Codelet& add = codelet("add \"quoted\"", {Access::read, Access::update},
                           [](const Arguments& a) { first(a, 1) += first(a); });
    Codelet& sum = codelet("sum", {Access::read, Access::read, Access::commute},
                           [](const Arguments& a) { first(a, 2) += first(a) * first(a, 1); });
    Codelet& gather = codelet("gather", {Access::read, Access::reduce},
                              [](const Arguments& a) { first(a, 1) += first(a); });
    gather.init = &codelet("zero", {Access::write}, [](const Arguments& a) {
      std::fill_n(a.operands[0].as<double>(), a.operands[0].cols * a.operands[0].ld, 0.0);
    });
    gather.combine = &codelet("plus", {Access::update, Access::read},
                              [](const Arguments& a) { first(a) += first(a, 1); });
    for (std::size_t i = 0; i < 60; ++i) {
      for (std::size_t k = 1; k < 6 && i % 10 == 0; ++k)
        engine().submit(gather, {{data[(i + k) % 6], Access::read}, {data[i % 6], Access::reduce}});
      engine().submit(add,
                      {{data[i % 6], Access::read}, {data[(i + 1 + i % 5) % 6], Access::update}});
      engine().submit(sum, {{data[i % 6], Access::read},
                            {data[(i + 2) % 6], Access::read},
                            {data[(i + 3) % 6], Access::commute}});
    }
    wait();
    return Json::parse(engine().trace_json());
  }

 private:
  std::deque<std::vector<double>> homes_;
};

INSTANTIATE_TEST_SUITE_P(Engine, TraceTest, every_engine(), where_name);

TEST_P(TraceTest, IsRefusedWithoutTracing) {
  try {
    engine().trace_json();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unavailable);
  }
}

TEST_P(TraceTest, DeviceCountersAreTheSumsOfTheEvents) {
  const Json trace = traced();
  const Counters counters = engine().counters();
  std::size_t tasks = 0;
  for (std::size_t d = 0; d < counters.devices.size(); ++d) {
    const std::string& device = engine().machine().devices[d].name;
    const Json& reported = trace["quadriga"]["counters"]["devices"][d];
    std::map<std::string, std::uint64_t> counted;
    std::vector<Span> kernels, copies;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] == "M") continue;
      const bool own = event["pid"] == d + 1;
      const std::string kind = event["cat"];
      if (own) ++counted[kind];
      const Nanoseconds begin = nanoseconds(event["ts"]);
      if (own && kind == "kernel") kernels.push_back({begin, begin + nanoseconds(event["dur"])});
      if (kind == "copy" && (event["args"]["from"] == device || event["args"]["to"] == device))
        copies.push_back({begin, begin + nanoseconds(event["dur"])});
    }
    const DeviceCounters& c = counters.devices[d];
    EXPECT_EQ(counted["kernel"], c.tasks) << device;
    EXPECT_EQ(counted["hit"], c.hits) << device;
    EXPECT_EQ(counted["miss"], c.misses) << device;
    EXPECT_EQ(counted["prefetch"], c.prefetches) << device;
    EXPECT_EQ(counted["evict"], c.evictions) << device;
    EXPECT_EQ(counted["write_back"], c.write_backs) << device;
    EXPECT_EQ(counted["steal"], c.steals) << device;
    if (GetParam() != Where::host) {
      EXPECT_EQ(length(kernels), c.computing) << device;
      EXPECT_EQ(length(copies), c.copying) << device;
      EXPECT_EQ(common(kernels, copies), c.overlap) << device;
    }
    EXPECT_EQ(reported["tasks"], c.tasks);
    EXPECT_EQ(reported["steals"], c.steals);
    EXPECT_NEAR(reported["overlap_seconds"], static_cast<double>(c.overlap) / 1e9, 1e-12);
    tasks += c.tasks;
  }
  EXPECT_EQ(tasks, tasks_in(GetParam()));
  EXPECT_EQ(counters.ended, tasks);
  EXPECT_EQ(counters.submitted, tasks);
}

TEST_P(TraceTest, LinkCountersAndBusyTimesAreTheSumsOfTheEvents) {
  const Json trace = traced();
  const Counters counters = engine().counters();
  std::map<std::pair<std::string, std::string>, std::pair<std::uint64_t, std::uint64_t>> links;
  std::map<std::pair<int, int>, std::string> kinds;
  std::map<std::pair<int, std::string>, Nanoseconds> busy;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "M" && event["name"] == "thread_name")
      kinds[{event["pid"], event["tid"]}] = event["args"]["kind"];
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    busy[{event["pid"], kinds.at({event["pid"], event["tid"]})}] += nanoseconds(event["dur"]);
    if (event["cat"] != "copy") continue;
    auto& [bytes, copies] = links[{event["args"]["from"], event["args"]["to"]}];
    bytes += event["args"]["bytes"].get<std::uint64_t>();
    ++copies;
  }
  std::uint64_t sum = 0;
  for (const Json& link : trace["quadriga"]["counters"]["links"]) {
    const auto& [bytes, copies] = links[{link["from"], link["to"]}];
    EXPECT_EQ(bytes, link["bytes"]);
    EXPECT_EQ(copies, link["copies"]);
    sum += bytes;
  }
  EXPECT_EQ(counters.bytes(), sum);
  EXPECT_EQ(links.size(), counters.links.size());
  const char* const names[] = {"copy_in", "copy_out", "peer_in", "compute", "panel"};
  for (std::size_t d = 0; d < counters.devices.size(); ++d)
    for (std::size_t kind = 0; kind < 5; ++kind)
      EXPECT_EQ((busy[{static_cast<int>(d) + 1, names[kind]}]), counters.devices[d].busy[kind]);
}

TEST_P(TraceTest, CountersKnowWorkAndItsEndWhereverItRan) {
  const Json trace = traced();
  Nanoseconds work = 0;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "kernel") work += nanoseconds(event["dur"]);
  const Counters counters = engine().counters();
  EXPECT_NEAR(counters.work_seconds, static_cast<double>(work) / 1e9, 1e-9);
  Nanoseconds computing = 0;
  for (const DeviceCounters& device : counters.devices) computing += device.computing;
  EXPECT_GT(computing, 0);
  EXPECT_GE(counters.elapsed, work / 16);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(engine().counters().elapsed, counters.elapsed);
}

TEST_P(TraceTest, TheHeadHoldsTheGraphAndTheBound) {
  const Json trace = traced();
  const Json& head = trace["quadriga"];
  EXPECT_EQ(head["version"], 1);
  EXPECT_EQ(head["clock"], is_virtual(GetParam()) ? "virtual" : "real");
  ASSERT_EQ(head["tasks"].size(), tasks_in(GetParam()));
  std::map<std::uint64_t, Nanoseconds> duration, path;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "kernel")
      duration[event["args"]["task"]] = nanoseconds(event["dur"]);
  std::map<std::string, std::size_t> named;
  Nanoseconds longest = 0;
  for (const Json& task : head["tasks"]) {
    const std::uint64_t id = task["id"];
    Nanoseconds before = 0;
    for (const std::uint64_t other : task["after"]) {
      EXPECT_LT(other, id);
      before = std::max(before, path.at(other));
    }
    path[id] = before + duration.at(id);
    longest = std::max(longest, path[id]);
    ++named[task["name"]];
  }
  EXPECT_EQ(named["add \"quoted\""], 60u);
  EXPECT_EQ(named["sum"], 60u);
  EXPECT_EQ(named["gather"], 30u);
  // The second task reads what nothing has written yet, beside what the first one updated.
  EXPECT_EQ(head["tasks"][0]["after"].size(), 0u);
  const Json& bound = head["bound"];
  EXPECT_NEAR(bound["critical_path_seconds"], static_cast<double>(longest) / 1e9, 1e-12);
  const double parts[] = {bound["work_seconds"], bound["critical_path_seconds"],
                          bound["link_seconds"]};
  EXPECT_EQ(bound["seconds"], *std::ranges::max_element(parts));
  if (is_virtual(GetParam())) {
    EXPECT_GE(head["seconds"].get<double>(), bound["critical_path_seconds"].get<double>());
  }
}

TEST_P(TraceTest, KernelsSayHowLongTheMachinesTableExpectedThem) {
  const Json trace = traced();
  std::size_t told = 0, kernels = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "kernel") continue;
    ++kernels;
    if (!event["args"].contains("expected")) continue;
    EXPECT_EQ(nanoseconds(event["args"]["expected"]), 10'000);
    ++told;
  }
  // Only the machine of the virtual clock has a table.
  EXPECT_EQ(told, is_virtual(GetParam()) ? kernels : 0);
}

TEST_P(TraceTest, ResetForgetsCountersAndEvents) {
  traced();
  engine().reset_counters();
  const Counters none = engine().counters();
  EXPECT_EQ(none.submitted, 0u);
  EXPECT_EQ(none.ended, 0u);
  EXPECT_EQ(none.bytes(), 0u);
  for (const DeviceCounters& device : none.devices) EXPECT_EQ(device.tasks, 0u);
  const Data data = tile();
  Codelet& more = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  engine().submit(more, {{data, Access::update}});
  wait();
  const Json trace = Json::parse(engine().trace_json());
  EXPECT_EQ(trace["quadriga"]["tasks"].size(), 1u);
  EXPECT_EQ(engine().counters().ended, 1u);
}

TEST_P(TraceTest, TheVirtualClockRepeatsTheTraceToTheByte) {
  if (!is_virtual(GetParam())) GTEST_SKIP() << "the real clock doesn't repeat";
  const std::string once = traced().dump();
  EXPECT_EQ(traced().dump(), once);
}

}  // namespace
}  // namespace quadriga
