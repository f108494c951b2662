// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_host.cpp: bodies on the host: several chunks at once, or one at a time.
#include <utility>

#include "pipeline/flow.h"

namespace quadriga {

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
    FlowItem* const item = segment.queue.front();
    segment.queue.pop_front();
    if (is_unwanted(*item))
      drop(*item);
    else
      submit_parallel(*item, segment);
  }
}

/// A virtual clock that only takes the time of tasks calls no body: the flow calls them itself.
void Flow::submit_host(const Codelet& codelet, std::span<const std::byte> params,
                       TaskGroup* group) {
  const EngineOptions& options = engine_.options();
  if (options.virtual_clock && !options.compute) return codelet.cpu({{}, params});
  EngineAccess::submit(engine_, codelet, {}, params, {}, group);
}

void Flow::submit_parallel(FlowItem& item, Segment& segment) {
  ++host_running_;
  ++segment.running;
  const HostParams params{this, &item, &segment};
  submit_host(segment.codelet, std::as_bytes(std::span(&params, 1)), &tasks_);
}

/// One task for all that wait: each is told when it has passed.
void Flow::submit_serial(Segment& segment) {
  segment.batch.clear();
  for (FlowItem* const item : segment.queue) {
    if (is_unwanted(*item))
      drop(*item);
    else
      segment.batch.push_back(item);
  }
  segment.queue.clear();
  if (segment.batch.empty()) return;
  segment.running = static_cast<int>(segment.batch.size());
  const HostParams params{this, nullptr, &segment};
  submit_host(segment.codelet, std::as_bytes(std::span(&params, 1)), &tasks_);
}

void Flow::host_body(const Arguments& arguments) {
  const auto params = arguments.param<HostParams>();
  if (params.item) {
    params.flow->run_body(*params.item, *params.segment);
    return params.flow->post({Mail::Kind::host, params.item});
  }
  // The last one's mail ends the batch, which the driving thread fills again.
  std::vector<FlowItem*>& batch = params.segment->batch;
  for (std::size_t i = 0, count = batch.size(); i < count; ++i) {
    FlowItem* const item = batch[i];
    params.flow->run_body(*item, *params.segment);
    params.flow->post({Mail::Kind::host, item});
  }
}

/// Of the segment's stages; what they throw is the chunk's failure.
void Flow::run_body(FlowItem& item, const Segment& segment) {
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
}

void Flow::host_ended(FlowItem& item) {
  Segment& segment = *segments_[item.segment];
  --segment.running;
  if (segment.kind == StageKind::parallel) --host_running_;
  go_on(item);
}

}  // namespace quadriga
