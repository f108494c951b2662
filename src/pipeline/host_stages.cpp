// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/host_stages.cpp: tasks that call bodies.
#include "pipeline/host_stages.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace quadriga {
namespace {

/// What several chunks of one task may take before the first is passed on: some times what waking
/// the driving thread takes, which shares its core with the bodies.
constexpr Nanoseconds quick = 100'000;

}  // namespace

HostStages::HostStages(const FlowParts& parts, ChunkRouter& router)
    : parts_(parts), router_(router), cores_(host_cores(parts.engine)) {
  for (const Segment& segment : parts.plan.segments()) {
    std::unique_ptr<Lane>& lane = lanes_.emplace_back();
    if (segment.kind == StageKind::kernel || segment.kind == StageKind::flat_map) continue;
    lane = std::make_unique<Lane>();
    lane->segment = &segment;
    lane->codelet.name = parts.plan.stages()[segment.first].name;
    lane->codelet.host_only = true;
    lane->codelet.blocks = !parts.engine.host_only();
    lane->codelet.cost = [](const Arguments&) { return Cost{no_work, 0, 0}; };
    lane->codelet.cpu = &HostStages::body;
    for (std::size_t s = segment.first; s < segment.last; ++s)
      lane->is_slow |= parts.plan.stages()[s].seconds && parts.time.is_stated();
  }
}

void HostStages::add(FlowItem& item) {
  Lane& lane = *lanes_[item.segment];
  parts_.stats.of(lane.segment->first).came();
  if (lane.segment->kind == StageKind::serial_in_order)
    lane.in_order.put(item.sequence, &item);
  else
    lane.queue.push_back(&item);
}

void HostStages::wont_come(std::size_t segment, std::uint64_t sequence) {
  if (lanes_[segment] && lanes_[segment]->segment->kind == StageKind::serial_in_order)
    lanes_[segment]->in_order.put(sequence, nullptr);
}

void HostStages::pump() {
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    if (!lane) continue;
    while (FlowItem* const item = lane->in_order.take()) lane->queue.push_back(item);
    if (lane->segment->kind == StageKind::parallel) {
      pump_parallel(*lane);
    } else if (lane->running == 0 && !lane->queue.empty()) {
      take(*lane, lane->is_slow ? 1 : std::numeric_limits<std::size_t>::max());
      submit(*lane);
    }
  }
}

/// On cores a task waits for its turn only if no other one does: workers look into their own queues
/// first, so that younger ones there would go before it, and stages in order wait for its chunks.
bool HostStages::may_begin_parallel() const {
  const int threads = parts_.options.threads;
  if (!parts_.engine.host_only()) return running_ < threads;
  if (threads < cores_ && running_ >= threads) return false;
  return in_flight_ < cores_ || waiting_.load() == 0;
}

void HostStages::pump_parallel(Lane& lane) {
  while (!lane.queue.empty() && may_begin_parallel()) {
    take(lane, quick_chunks(lane));
    if (!lane.batch.empty()) ++running_;
    submit(lane);
  }
}

/// Moves chunks from the queue to the batch.
void HostStages::take(Lane& lane, std::size_t most) {
  lane.batch.clear();
  while (!lane.queue.empty() && lane.batch.size() < most) {
    FlowItem* const item = lane.queue.front();
    lane.queue.pop_front();
    if (!router_.is_unwanted(item->chunk.id())) {
      lane.batch.push_back(item);
      continue;
    }
    parts_.stats.of(lane.segment->first).began(0);
    router_.dropped(*item);
  }
}

/// One task for the batch.
void HostStages::submit(Lane& lane) {
  if (lane.batch.empty()) return;
  for (std::size_t i = 0; i + 1 < lane.batch.size(); ++i) lane.batch[i]->next = lane.batch[i + 1];
  lane.batch.back()->next = nullptr;
  lane.batch.back()->ends_task = true;
  ++lane.running;
  ++in_flight_;
  if (lane.is_slow) return submit_slow(*lane.batch.front(), *lane.segment);
  if (lane.segment->kind == StageKind::parallel) waiting_.fetch_add(1);
  const Params params{this, lane.batch.front(), lane.segment};
  submit_body(parts_.engine, lane.codelet, std::as_bytes(std::span(&params, 1)), tasks_,
              priority_of(lane));
}

/// Chunks that are further go first, so that no stage runs ahead of those behind it.
int HostStages::priority_of(const Lane& lane) const {
  return static_cast<int>(lane.segment - parts_.plan.segments().data());
}

/// How many chunks one task takes: of bodies that take less than a task, several.
std::size_t HostStages::quick_chunks(const Lane& lane) const {
  if (lane.is_slow) return 1;
  Nanoseconds mean = 0;
  for (std::size_t s = lane.segment->first; s < lane.segment->last; ++s)
    mean += parts_.stats.mean(s);
  constexpr std::size_t most = 32;
  const std::size_t share =
      lane.queue.size() / static_cast<std::size_t>(parts_.options.threads) + 1;
  return std::min(
      {most, share, static_cast<std::size_t>(quick / std::max<Nanoseconds>(1, mean)) + 1});
}

/// Passes on what it has done as soon as that has taken longer than a mail.
void HostStages::body(const Arguments& arguments) {
  const auto params = arguments.param<Params>();
  HostStages& self = *params.stages;
  FlowItem* first = params.item;
  Nanoseconds since = self.parts_.engine.now();
  const Segment& segment = *params.segment;
  if (segment.kind == StageKind::parallel) self.waiting_.fetch_sub(1);
  std::vector<StageTally> tallies(segment.last - segment.first);
  for (FlowItem* item = first; item;) {
    FlowItem* const next = item->next;
    const Nanoseconds end = self.run_bodies(*item, segment, tallies);
    if (!next || end - since > quick) {
      item->next = nullptr;
      for (std::size_t s = segment.first; s < segment.last; ++s)
        self.parts_.stats.of(s).add(tallies[s - segment.first]);
      self.router_.tell({Mail::Kind::host, first});
      first = next;
      since = end;
    }
    item = next;
  }
}

/// Of the segment's stages; what they throw is the chunk's failure. When they have ended.
Nanoseconds HostStages::run_bodies(FlowItem& item, const Segment& segment,
                                   std::vector<StageTally>& tallies) {
  Nanoseconds begin = parts_.engine.now();
  ++tallies.front().begun;
  tallies.front().waited += begin - item.ready;
  Nanoseconds came = item.ready;
  for (std::size_t s = segment.first; s < segment.last; ++s) {
    if (!run_one(item, s)) continue;
    const Nanoseconds end = parts_.engine.now();
    StageTally& tally = tallies[s - segment.first];
    ++tally.chunks;
    tally.busy += end - begin;
    parts_.stats.of(s).latency.add(end - came);
    begin = came = end;
  }
  return begin;
}

/// False if the chunk doesn't pass the stage.
bool HostStages::run_one(FlowItem& item, std::size_t stage) {
  if (item.error || item.is_filtered || !item.passed.has(stage)) return false;
  const Stage& stated = parts_.plan.stages()[stage];
  try {
    item.is_filtered = !stated.body(item.chunk);
  } catch (...) {
    item.fail(std::current_exception(), stated.name);
  }
  return true;
}

/// Calls the bodies at once, and lets the time of the stages pass behind them.
void HostStages::submit_slow(FlowItem& item, const Segment& segment) {
  std::vector<double> times = run_slow(item, segment);
  double sum = 0;
  for (const double each : times) sum += each;
  item.time = parts_.time.pass(sum, [this, &item, &segment, sum, times = std::move(times)] {
    const auto in_all = [](double seconds) { return static_cast<Nanoseconds>(seconds * 1e9); };
    const Nanoseconds waited = parts_.engine.now() - item.ready - in_all(sum);
    parts_.stats.of(segment.first).began(waited);
    for (std::size_t i = 0; i < times.size(); ++i)
      if (item.passed.has(segment.first + i))
        parts_.stats.of(segment.first + i)
            .worked(in_all(times[i]), in_all(times[i]) + (i == 0 ? waited : 0));
    parts_.mail.post({Mail::Kind::host, &item});
  });
}

/// What each stage takes.
std::vector<double> HostStages::run_slow(FlowItem& item, const Segment& segment) {
  std::vector<double> times;
  for (std::size_t s = segment.first; s < segment.last; ++s) {
    const Stage& stage = parts_.plan.stages()[s];
    const bool passes = run_one(item, s);
    times.push_back(0);
    if (!passes || !stage.seconds) continue;
    try {
      times.back() = stated_seconds(stage.seconds, item.chunk);
    } catch (...) {
      item.fail(std::current_exception(), stage.name);
    }
  }
  return times;
}

void HostStages::ended(FlowItem& chain) {
  for (FlowItem* item = &chain; item;) {
    FlowItem* const next = std::exchange(item->next, nullptr);
    if (std::exchange(item->ends_task, false)) {
      Lane& lane = *lanes_[item->segment];
      --lane.running;
      --in_flight_;
      if (lane.segment->kind == StageKind::parallel) --running_;
    }
    router_.passed(*item);
    item = next;
  }
}

}  // namespace quadriga
