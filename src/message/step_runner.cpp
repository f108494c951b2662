// SPDX-License-Identifier: BSD-3-Clause
// src/message/step_runner.cpp: begins each step once it may, and waits for whichever ends first.
#include "message/step_runner.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>

#include "message/pack/stream.h"

namespace quadriga::message {
namespace {

class StepRunner {
 public:
  StepRunner(const RankSteps& own, const StepMeans& means)
      : own_(own), means_(means), waits_(own.steps.size()), followers_(own.steps.size()) {
    if (means.times) means.times->size(own.steps.size());
    for (std::uint32_t i = 0; i < own.steps.size(); ++i) {
      const RankStep& step = own.steps[i];
      if (means.times) (*means.times)[i] = {step.kind, step.peer, step.bytes};
      waits_[i] = step.afters;
      for (const std::uint32_t before : own.awaited(step)) followers_[before].push_back(i);
      if (is_transfer(step)) lane_of(step).listed.push_back(i);
      if (step.afters == 0) make_ready(i);
    }
  }

  void run() {
    try {
      advance();
      while (!open_.empty()) {
        means_.wait_any(open_);
        end_transfers();
        advance();
      }
    } catch (...) {
      for (const TransferPtr& each : open_) means_.withdraw(each);
      throw;
    }
  }

 private:
  struct Lane {
    std::deque<std::uint32_t> listed;  // Not begun.
    int in_flight = 0;
  };

  static bool is_transfer(const RankStep& step) {
    return step.kind == StepKind::send || step.kind == StepKind::receive;
  }
  void note(std::uint32_t step, double StepTime::*what) {
    if (means_.times) (*means_.times)[step].*what = means_.times->now();
  }
  void make_ready(std::uint32_t step) {
    note(step, &StepTime::ready);
    ready_.push_back(step);
  }
  Lane& lane_of(const RankStep& step) { return lanes_[{step.kind, step.peer, step.lane}]; }

  // Takes what can be taken now; transfers first, since others wait for them.
  void advance() {
    while (!ready_.empty() || !local_.empty()) {
      if (!ready_.empty()) {
        const std::uint32_t i = ready_.front();
        ready_.pop_front();
        if (is_transfer(own_.steps[i]))
          start_lane(lane_of(own_.steps[i]));
        else
          local_.push_back(i);
        continue;
      }
      const std::uint32_t i = local_.front();
      local_.pop_front();
      note(i, &StepTime::begun);
      note(i, &StepTime::matched);
      const bool has_ended = take(i);
      note(i, &StepTime::queued);
      if (has_ended) end(i);
    }
  }

  void start_lane(Lane& lane) {
    while (!lane.listed.empty() && waits_[lane.listed.front()] == 0 &&
           lane.in_flight < transfers_in_flight) {
      const std::uint32_t i = lane.listed.front();
      const RankStep& step = own_.steps[i];
      const bool sends = step.kind == StepKind::send;
      note(i, &StepTime::begun);
      const MessageBuffer place = means_.place(sends ? step.from : step.into, step.bytes);
      TransferPtr transfer =
          (sends ? means_.start_send : means_.start_receive)(step.peer, step.lane, place);
      note(i, &StepTime::queued);
      lane.listed.pop_front();
      ++lane.in_flight;
      open(std::move(transfer), i);
    }
  }

  void end_transfers() {
    for (std::size_t i = 0; i < open_.size();) {
      if (!open_[i]->done.load(std::memory_order_acquire)) {
        ++i;
        continue;
      }
      if (open_[i]->error) std::rethrow_exception(open_[i]->error);
      const std::uint32_t step = open_steps_[i];
      note_match(step, *open_[i]);
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      open_steps_.erase(open_steps_.begin() + static_cast<std::ptrdiff_t>(i));
      end(step);
      if (!is_transfer(own_.steps[step])) continue;
      Lane& lane = lane_of(own_.steps[step]);
      --lane.in_flight;
      start_lane(lane);
      // What has been started comes last, and may have ended already.
    }
  }

  // Of a large receive.
  void note_match(std::uint32_t step, const MessageTransfer& transfer) {
    if (!means_.times) return;
    StepTime& time = (*means_.times)[step];
    const bool is_matched = transfer.matched != MessageTransfer::Clock::time_point{};
    time.matched = is_matched ? means_.times->at(transfer.matched) : time.begun;
  }

  void end(std::uint32_t step) {
    note(step, &StepTime::ended);
    for (const std::uint32_t each : followers_[step])
      if (--waits_[each] == 0) make_ready(each);
  }

  void open(TransferPtr transfer, std::uint32_t step) {
    open_.push_back(std::move(transfer));
    open_steps_.push_back(step);
  }

  // False if devices are still at it.
  bool take(std::uint32_t index) {
    const RankStep& step = own_.steps[index];
    const MessageBuffer into = means_.place(step.into, step.bytes);
    const MessageBuffer from = means_.place(step.from, step.bytes);
    if (step.kind == StepKind::copy) {
      const bool is_there = from.data == into.data && from.layout == into.layout;
      if (is_there) return true;
      if (!from.on_device() && !into.on_device()) {
        copy_on_host(from, into);
        return true;
      }
      open(means_.start_copy(from, into), index);
      return false;
    }
    const MessageBuffer with = means_.place(step.with, step.bytes);
    if (into.on_device()) {
      open(means_.start_reduction(into, from, with), index);
      return false;
    }
    copy_on_host(from, into);
    means_.combine(into.data, with.data,
                   static_cast<std::size_t>(step.bytes) / means_.element_bytes);
    return true;
  }

  const RankSteps& own_;
  const StepMeans& means_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::vector<std::uint32_t>> followers_;
  std::map<std::tuple<StepKind, int, int>, Lane> lanes_;
  std::deque<std::uint32_t> ready_, local_;
  std::vector<TransferPtr> open_;
  std::vector<std::uint32_t> open_steps_;
};

}  // namespace

void copy_on_host(const MessageBuffer& from, const MessageBuffer& into) {
  if (from.bytes() == 0) return;
  std::byte* const source = from.flat();
  std::byte* const target = into.flat();
  if (source != nullptr && target != nullptr) {
    if (source != target) std::memmove(target, source, from.bytes());
    return;
  }
  if (from.data == into.data && from.layout == into.layout) return;
  if (target != nullptr) {
    Packer(from.layout, from.data).pack(0, {target, from.bytes()});
  } else if (source != nullptr) {
    Unpacker(into.layout, into.data).unpack(0, {source, from.bytes()});
  } else {
    std::vector<std::byte> packed(from.bytes());
    Packer(from.layout, from.data).pack(0, packed);
    Unpacker(into.layout, into.data).unpack(0, packed);
  }
}

void take_steps(const RankSteps& steps, const StepMeans& means) { StepRunner(steps, means).run(); }

}  // namespace quadriga::message
