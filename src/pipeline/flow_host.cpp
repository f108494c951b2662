// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_host.cpp: bodies on the host: several chunks at once, or one at a time.
#include <algorithm>
#include <utility>

#include "pipeline/flow.h"

namespace quadriga {
namespace {

/// What several chunks of one task may take before the first is passed on: some mails' time.
constexpr Nanoseconds quick = 20'000;

}  // namespace

void Flow::begin_host(FlowItem& item, Segment& segment) {
  if (segment.kind == StageKind::serial_in_order)
    segment.early.emplace(item.chunk.number(), &item);
  else
    segment.queue.push_back(&item);
}

void Flow::pump_host(Segment& segment) {
  // Their numbers pass in order, also of chunks that failed before.
  while (!segment.early.empty() && segment.early.begin()->first == segment.next_number) {
    if (FlowItem* const item = segment.early.begin()->second) segment.queue.push_back(item);
    segment.early.erase(segment.early.begin());
    ++segment.next_number;
  }
  if (segment.kind != StageKind::parallel) {
    if (segment.running == 0 && !segment.queue.empty()) submit_serial(segment);
    return;
  }
  while (!segment.queue.empty() && (engine_.host_only() || host_running_ < options_.threads)) {
    const std::size_t most = quick_chunks(segment);
    std::vector<FlowItem*>& batch = segment.batch;
    batch.clear();
    while (!segment.queue.empty() && batch.size() < most) {
      FlowItem* const item = segment.queue.front();
      segment.queue.pop_front();
      if (is_unwanted(*item))
        drop(*item);
      else
        batch.push_back(item);
    }
    host_running_ += static_cast<int>(batch.size());
    submit_batch(segment);
  }
}

/// How many chunks one task takes: of bodies that take less than a task, several.
std::size_t Flow::quick_chunks(const Segment& segment) const {
  Nanoseconds mean = 0;
  for (std::size_t s = segment.first; s < segment.last; ++s) mean += stats_.mean(s + 1);
  constexpr std::size_t most = 32;
  const std::size_t share = segment.queue.size() / static_cast<std::size_t>(options_.threads) + 1;
  return std::min(
      {most, share, static_cast<std::size_t>(quick / std::max<Nanoseconds>(1, mean)) + 1});
}

/// A virtual clock that only takes the time of tasks calls no body: the flow calls them itself.
void Flow::submit_host(const Codelet& codelet, std::span<const std::byte> params,
                       TaskGroup* group) {
  const EngineOptions& options = engine_.options();
  if (options.virtual_clock && !options.compute) return codelet.cpu({{}, params});
  EngineAccess::submit(engine_, codelet, {}, params, {}, group);
}

/// One task for all that wait.
void Flow::submit_serial(Segment& segment) {
  segment.batch.clear();
  for (FlowItem* const item : segment.queue) {
    if (is_unwanted(*item))
      drop(*item);
    else
      segment.batch.push_back(item);
  }
  segment.queue.clear();
  submit_batch(segment);
}

void Flow::submit_batch(Segment& segment) {
  if (segment.batch.empty()) return;
  for (std::size_t i = 0; i + 1 < segment.batch.size(); ++i)
    segment.batch[i]->next = segment.batch[i + 1];
  segment.batch.back()->next = nullptr;
  segment.running += static_cast<int>(segment.batch.size());
  const HostParams params{this, segment.batch.front(), &segment};
  submit_host(segment.codelet, std::as_bytes(std::span(&params, 1)), &tasks_);
}

/// Passes on what it has done as soon as that has taken longer than a mail.
void Flow::host_body(const Arguments& arguments) {
  const auto params = arguments.param<HostParams>();
  FlowItem* first = params.item;
  Nanoseconds since = params.flow->clock();
  for (FlowItem* item = first; item;) {
    FlowItem* const next = item->next;
    const Nanoseconds end = params.flow->run_body(*item, *params.segment);
    if (!next || end - since > quick) {
      item->next = nullptr;
      params.flow->post({Mail::Kind::host, first});
      first = next;
      since = end;
    }
    item = next;
  }
}

/// Of the segment's stages; what they throw is the chunk's failure. When they have ended.
Nanoseconds Flow::run_body(FlowItem& item, const Segment& segment) {
  Nanoseconds begin = clock();
  stats_.waited(segment.first + 1, begin - item.ready);
  for (std::size_t s = segment.first; s < segment.last && !item.error; ++s) {
    try {
      stages_[s].body(item.chunk);
    } catch (...) {
      fail_item(item, std::current_exception(), stages_[s].name);
    }
    const Nanoseconds end = clock();
    stats_.worked(s + 1, end - begin, true);
    begin = end;
  }
  return begin;
}

void Flow::host_ended(FlowItem& item) {
  Segment& segment = *segments_[item.segment];
  --segment.running;
  if (segment.kind == StageKind::parallel) --host_running_;
  go_on(item);
}

}  // namespace quadriga
