// SPDX-License-Identifier: BSD-3-Clause
// src/engine/trace.cpp: a run as JSON in the form of docs/report.md: events, counters, bound,
// tasks.
#include <fmt/format.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "device/kinds.h"
#include "engine/engine_impl.h"

namespace quadriga {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view reason_names[] = {"stage", "prefetch", "write_back", "evict", "final"};
constexpr std::string_view mark_names[] = {"hit",   "miss",       "prefetch",
                                           "evict", "write_back", "steal"};

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

double seconds_of(Nanoseconds time) { return static_cast<double>(time) / 1e9; }

/// Microseconds with all nanoseconds.
std::string microseconds(Nanoseconds time) {
  time = std::max<Nanoseconds>(time, 0);
  return fmt::format("{}.{:03}", time / 1000, time % 1000);
}

const std::string& name_of_space(const Machine& machine, SpaceId space) {
  static const std::string host = "host";
  for (const Device& device : machine.devices)
    if (device.space == space && space != host_space) return device.name;
  return host;
}

Json counters_json(const Machine& machine, const Counters& counters) {
  Json json{{"links", Json::array()}, {"devices", Json::array()}};
  for (const LinkCounters& link : counters.links)
    json["links"].push_back({{"from", name_of_space(machine, link.source)},
                             {"to", name_of_space(machine, link.target)},
                             {"bytes", link.bytes},
                             {"copies", link.copies}});
  for (std::size_t d = 0; d < counters.devices.size(); ++d) {
    const DeviceCounters& device = counters.devices[d];
    Json busy;
    for (std::size_t kind = 0; kind < device.busy.size(); ++kind)
      busy[std::string(name(static_cast<StreamKind>(kind)))] = seconds_of(device.busy[kind]);
    json["devices"].push_back(
        {{"name", machine.devices[d].name},
         {"tasks", device.tasks},
         {"hits", device.hits},
         {"misses", device.misses},
         {"prefetches", device.prefetches},
         {"evictions", device.evictions},
         {"write_backs", device.write_backs},
         {"steals", device.steals},
         {"busy_seconds", busy},
         {"overlap_seconds", seconds_of(device.overlap)},
         {"overlap_possible_seconds", seconds_of(std::min(device.copying, device.computing))}});
  }
  return json;
}

/// The graph of the tasks that ran, and how long each took.
struct TraceGraph {
  struct Node {
    std::string_view name;
    DeviceId device = no_device;
    Nanoseconds duration = 0;
    Nanoseconds path = -1;  ///< Longest chain that ends with it; -1: not known yet.
    const Submission* submission = nullptr;
    std::vector<std::uint64_t> after;
  };
  std::map<std::uint64_t, Node> nodes;
  const std::vector<Submission> submissions;

  TraceGraph(const Recorder& recorder,
             const std::vector<std::pair<std::uint64_t, std::uint64_t>>& edges)
      : submissions(recorder.submissions()) {
    recorder.for_each_kernel([&](DeviceId device, const Record& record) {
      Node& node = nodes[record.task];
      node.name = *record.name;
      node.device = device;
      node.duration = record.end - record.begin;
    });
    for (const Submission& each : submissions)
      if (const auto node = nodes.find(each.task); node != nodes.end())
        node->second.submission = &each;
    for (const auto& [before, after] : edges) {
      const auto node = nodes.find(after);
      if (node == nodes.end() || !nodes.contains(before)) continue;
      std::vector<std::uint64_t>& list = node->second.after;
      if (std::ranges::find(list, before) == list.end()) list.push_back(before);
    }
  }

  /// Predecessors were submitted before, so that one pass in order of the ids will do.
  Nanoseconds longest_path() {
    Nanoseconds longest = 0;
    for (auto& [id, node] : nodes) {
      node.path = node.duration;
      for (const std::uint64_t before : node.after)
        node.path = std::max(node.path, nodes[before].path + node.duration);
      longest = std::max(longest, node.path);
    }
    return longest;
  }

  Json json(Nanoseconds origin) const {
    Json list = Json::array();
    for (const auto& [id, node] : nodes) {
      list.push_back(
          {{"id", id}, {"name", node.name}, {"device", node.device}, {"after", node.after}});
      if (node.submission != nullptr) add(list.back(), *node.submission, origin);
    }
    return list;
  }

  /// What another engine needs to run a task like it.
  static void add(Json& task, const Submission& given, Nanoseconds origin) {
    task["submitted"] = seconds_of(std::max<Nanoseconds>(0, given.when - origin));
    Json operands = Json::array();
    for (const Submission::Operand& each : given.operands)
      operands.push_back({each.data, name(each.access)});
    task["operands"] = std::move(operands);
    if (!given.kernel.empty()) task["cost"] = {given.kernel, given.order, given.volume};
    if (given.workspace > 0) task["workspace"] = given.workspace;
    if (!given.after.empty()) task["follows"] = given.after;
    if (!given.final.empty()) task["final"] = given.final;
    if (given.priority != 0) task["priority"] = given.priority;
    if (given.owner != no_device) task["owner"] = given.owner;
    if (given.host_only) task["host_only"] = true;
  }
};

Json data_json(const Recorder& recorder) {
  Json list = Json::array();
  for (const RecordedData& each : recorder.data())
    list.push_back({each.rows, each.cols, each.ld, name(each.dtype), each.homed});
  return list;
}

Json sections_json(const Recorder& recorder, Nanoseconds origin) {
  Json list = Json::array();
  for (const Section& each : recorder.sections())
    if (each.end > origin) {
      list.push_back({{"name", each.name},
                      {"start", seconds_of(std::max<Nanoseconds>(0, each.begin - origin))},
                      {"end", seconds_of(each.end - origin)}});
      if (!each.details.empty()) list.back()["stream"] = Json::parse(each.details);
    }
  return list;
}

/// Rows of their own for messages that overlap in time: place 0 is the host's.
std::string messages_text(const std::vector<MessageEvent>& messages, Nanoseconds origin) {
  std::vector<std::size_t> order(messages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return messages[i].begin; });
  std::vector<Nanoseconds> ends;
  std::string text;
  for (const std::size_t i : order) {
    const MessageEvent& each = messages[i];
    const auto row = std::ranges::find_if(ends, [&](Nanoseconds end) { return end <= each.begin; });
    const auto tid = row - ends.begin() + 1;
    if (row == ends.end()) {
      ends.push_back(each.end);
      text += fmt::format(
          R"(,{}{{"ph":"M","name":"thread_name","pid":0,"tid":{},"args":{{"name":"messages {}"}}}})",
          '\n', tid, tid);
    } else {
      *row = each.end;
    }
    text += fmt::format(
        R"(,{}{{"ph":"X","cat":"message","name":{},"pid":0,"tid":{},"ts":{},"dur":{},"args":{{"task":{},"from":{},"to":{},"tag":{},"context":"{:x}","bytes":{},"failed":{}}}}})",
        '\n', quoted(each.name), tid, microseconds(each.begin - origin),
        microseconds(each.end - each.begin), each.task, each.from, each.to, each.tag, each.context,
        each.bytes, each.failed);
  }
  return text;
}

/// Which rank this is, and when its clock's zero was by the clock of all processes of the host.
Json ranks_json(const MessageEvent& any, Nanoseconds origin, Nanoseconds now) {
  const Nanoseconds steady = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count();
  return {{"rank", any.rank}, {"size", any.ranks}, {"origin", steady - (now - origin)}};
}

/// Seconds of all kernels, shared by all that can compute at once.
double shared_work(const Machine& machine, const Counters& counters) {
  double work = 0;
  int workers = 0;
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    const Device& device = machine.devices[d];
    const DeviceCounters& counted = counters.devices[d];
    const bool is_cpu = device.kind == DeviceKind::cpu;
    if (properties_of(device.kind).only_stores) continue;
    workers += is_cpu ? device.cores : 1;
    // Kernels that run at once on an accelerator share its speed.
    work += is_cpu ? seconds_of(counted.busy[static_cast<std::size_t>(StreamKind::compute)])
                   : seconds_of(counted.computing);
  }
  return work / std::max(workers, 1);
}

/// The link that all copies took longest to cross, by their bytes.
std::pair<double, std::string> busiest_link(const Machine& machine, const Counters& counters) {
  std::vector<double> seconds(machine.links.size(), 0);
  for (const LinkCounters& moved : counters.links)
    if (const Route* const route = machine.route(moved.source, moved.target))
      for (const int link : route->links)
        seconds[static_cast<std::size_t>(link)] +=
            static_cast<double>(moved.bytes) /
            machine.links[static_cast<std::size_t>(link)].bytes_per_second;
  const auto most = std::ranges::max_element(seconds);
  if (most == seconds.end()) return {0, ""};
  return {*most, machine.links[static_cast<std::size_t>(most - seconds.begin())].name};
}

}  // namespace

const std::string& Recorder::space_name(SpaceId space) const {
  return name_of_space(machine_, space);
}

std::pair<Nanoseconds, Nanoseconds> Recorder::extent() const {
  Nanoseconds begin = never;
  Nanoseconds end = 0;
  const Nanoseconds first = first_kept();
  for (const auto& lane : lanes_) {
    std::lock_guard lock(lane->lock);
    for (const Record& record : lane->records) {
      if (record.end < first) continue;
      begin = std::min(begin, record.begin);
      end = std::max(end, record.end);
    }
  }
  return {begin, end};
}

void Recorder::append_event(std::string& text, const Lane& lane, std::size_t tid,
                            const Record& record, Nanoseconds origin) const {
  const auto out = std::back_inserter(text);
  const std::string when = microseconds(record.begin - origin);
  const std::string duration = microseconds(record.end - record.begin);
  const int pid = lane.device + 1;
  switch (record.kind) {
    case Record::Kind::kernel:
      fmt::format_to(
          out,
          R"({{"ph":"X","cat":"kernel","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"task":{}{}}}}})",
          quoted(*record.name), pid, tid, when, duration, record.task,
          record.expected > 0 ? fmt::format(R"(,"expected":{})", microseconds(record.expected))
                              : "");
      return;
    case Record::Kind::fine:  // within a kernel, unless they are another core's
      fmt::format_to(
          out,
          R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"fine":{},"of":{}}}}})",
          record.detail & fine_helps ? "kernel" : "fine", quoted("fine tasks of " + *record.name),
          pid, tid, when, duration, record.bytes, record.task);
      return;
    case Record::Kind::copy:
      fmt::format_to(
          out,
          R"({{"ph":"X","cat":"copy","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"from":{},"to":{},"bytes":{},"tile":{},"why":"{}"}}}})",
          quoted(space_name(record.from) + " to " + space_name(record.to)), pid, tid, when,
          duration, quoted(space_name(record.from)), quoted(space_name(record.to)), record.bytes,
          record.tile, reason_names[record.detail]);
      return;
    case Record::Kind::mark:
      fmt::format_to(
          out,
          R"({{"ph":"i","cat":"{0}","name":"{0}","pid":{1},"tid":{2},"ts":{3},"s":"t","args":{{"tile":{4},"task":{5}}}}})",
          mark_names[record.detail], pid, tid, when,
          record.tile == no_tile ? -1 : static_cast<std::int64_t>(record.tile), record.task);
      return;
  }
}

std::string Recorder::events_json(Nanoseconds origin) const {
  std::string text;
  const Nanoseconds first = first_kept();
  const auto separate = [&] {
    if (!text.empty()) text += ",\n";
  };
  for (std::size_t d = 0; d < machine_.devices.size(); ++d) {
    separate();
    text += fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})",
                        d + 1, quoted(machine_.devices[d].name));
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = *lanes_[i];
    separate();
    text += fmt::format(
        R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{},"kind":"{}"}}}})",
        lane.device + 1, i + 1, quoted(lane.name), name(lane.kind));
    std::lock_guard lock(lane.lock);
    for (const Record& record : lane.records) {
      if (record.end < first) continue;
      separate();
      append_event(text, lane, i + 1, record, origin);
    }
  }
  return text;
}

void EngineAccess::section(Engine& engine, std::string name, Nanoseconds begin, Nanoseconds end,
                           std::string details) {
  engine.checked().recorder.section({std::move(name), begin, end, std::move(details)});
}

std::string Engine::trace_json() const {
  Impl& impl = *impl_;
  if (!impl.recorder.tracing())
    fail(Errc::unavailable, "this engine records no trace; make it with trace = true");
  Counters now = counters();
  impl.recorder.count_kept(now);
  const auto [first, last] = impl.recorder.extent();
  const Nanoseconds submitted = impl.recorder.has_dropped() ? -1 : impl.first_submission.load();
  const Nanoseconds origin = std::min(first, submitted >= 0 ? submitted : first);
  TraceGraph graph(impl.recorder, impl.graph.edges());
  const double work = shared_work(impl.machine, now);
  const double path = seconds_of(graph.longest_path());
  const auto [link_seconds, link] = busiest_link(impl.machine, now);
  std::vector<MessageEvent> messages = impl.recorder.messages();
  if (impl.recorder.has_dropped()) {
    std::erase_if(messages, [&](const MessageEvent& each) { return each.end <= origin; });
    for (MessageEvent& each : messages) each.begin = std::max(each.begin, origin);
  }
  Json header{{"version", 1},
              {"clock", impl.options.virtual_clock ? "virtual" : "real"},
              {"policy", impl.options.policy},
              {"devices_requested", impl.options.devices},
              {"seconds", last > 0 ? seconds_of(last - origin) : 0.0},
              {"machine", Json::parse(impl.machine.to_json())},
              {"counters", counters_json(impl.machine, now)},
              {"bound",
               {{"seconds", std::max({work, path, link_seconds})},
                {"work_seconds", work},
                {"critical_path_seconds", path},
                {"link_seconds", link_seconds},
                {"link", link}}},
              {"sections", sections_json(impl.recorder, origin)}};
  if (impl.recorder.keeps_graph()) {
    header["data"] = data_json(impl.recorder);
    header["tasks"] = graph.json(origin);
  }
  if (impl.recorder.has_dropped()) header["kept_seconds"] = seconds_of(impl.recorder.kept());
  if (!messages.empty())
    header["world"] = ranks_json(messages.front(), origin, impl.executor->now());
  return fmt::format("{{\"traceEvents\":[\n{}{}\n],\n\"quadriga\":{}}}\n",
                     impl.recorder.events_json(origin), messages_text(messages, origin),
                     header.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace quadriga
