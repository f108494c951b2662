// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/steps.cpp: segments along trees, written down as steps of one rank.
//
// Why no schedule can block: order all steps by segment, phase (up before down) and distance along
// the tree. A step waits for earlier steps of its rank and for its counterpart only, and none of
// these comes later in that order; memory that is used again belongs to an earlier segment.
#include "message/schedules/steps.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace quadriga::message {
namespace {

constexpr int no_step = -1;
// Partial results of a lane that are there at once: in flight, and being passed on.
constexpr int slots = transfers_in_flight + 2;

class StepWriter {
 public:
  int add(RankStep step, const std::vector<int>& after) {
    step.after = static_cast<std::uint32_t>(rank_.after.size());
    for (const int each : after)
      if (each != no_step) rank_.after.push_back(static_cast<std::uint32_t>(each));
    step.afters = static_cast<std::uint32_t>(rank_.after.size()) - step.after;
    rank_.steps.push_back(step);
    return static_cast<int>(rank_.steps.size()) - 1;
  }
  int send(StepPlace from, std::int64_t bytes, int peer, int lane, const std::vector<int>& after) {
    return add({StepKind::send, peer, lane, bytes, {}, from, {}}, after);
  }
  int receive(StepPlace into, std::int64_t bytes, int peer, int lane,
              const std::vector<int>& after) {
    return add({StepKind::receive, peer, lane, bytes, into, {}, {}}, after);
  }
  int copy(StepPlace into, StepPlace from, std::int64_t bytes, const std::vector<int>& after) {
    return add({StepKind::copy, -1, 0, bytes, into, from, {}}, after);
  }
  int reduce(StepPlace into, StepPlace from, StepPlace with, std::int64_t bytes,
             const std::vector<int>& after) {
    return add({StepKind::reduce, -1, 0, bytes, into, from, with}, after);
  }
  std::int64_t take(StepBuffer buffer, std::int64_t bytes) {
    std::int64_t& used = buffer == StepBuffer::stage ? rank_.stage_bytes : rank_.work_bytes;
    return std::exchange(used, used + bytes);
  }
  RankSteps finish() { return std::move(rank_); }

 private:
  RankSteps rank_;
};

// Memory that a lane's segments use in turn.
class SlotPool {
 public:
  SlotPool(StepBuffer buffer, std::int64_t bytes) : buffer_(buffer), bytes_(bytes) {}

  // The place of the next segment, and the steps that must have ended before it is written.
  StepPlace next(StepWriter& writer) {
    turn_ = (turn_ + 1) % slots;
    Slot& slot = slots_[turn_];
    if (slot.offset < 0) slot.offset = writer.take(buffer_, bytes_);
    before_ = std::exchange(slot.users, {});
    return {buffer_, slot.offset};
  }
  const std::vector<int>& before() const { return before_; }
  void used_by(int step) { slots_[turn_].users.push_back(step); }

 private:
  struct Slot {
    std::int64_t offset = -1;
    std::vector<int> users;
  };
  const StepBuffer buffer_;
  const std::int64_t bytes_;
  Slot slots_[slots];
  std::size_t turn_ = slots - 1;
  std::vector<int> before_;
};

std::vector<int> joined(std::vector<int> steps, std::initializer_list<int> more) {
  steps.insert(steps.end(), more);
  return steps;
}

// One rank's part of one tree, and the memory that it uses for it.
class TreeLane {
 public:
  TreeLane(const Cluster& cluster, const SchedulePlan& plan, int tree, int rank, StepWriter& writer)
      : cluster_(cluster),
        rank_(rank),
        tree_(tree),
        up_(plan.up.empty() ? nullptr : &plan.up[index(tree)]),
        down_(plan.down.empty() ? nullptr : &plan.down[index(tree)]),
        writer_(writer),
        sums_(StepBuffer::work, plan.options.segment_bytes),
        sent_(StepBuffer::stage, plan.options.segment_bytes),
        passed_(StepBuffer::stage, plan.options.segment_bytes) {
    if (up_ != nullptr)
      for (std::size_t i = 0; i < children(*up_).size(); ++i) {
        arrived_.emplace_back(StepBuffer::work, plan.options.segment_bytes);
        staged_.emplace_back(StepBuffer::stage, plan.options.segment_bytes);
      }
  }

  void add(const ScheduleSegment& segment, bool keeps_own) {
    int ready = no_step;
    if (up_ != nullptr)
      ready = go_up(segment);
    else if (keeps_own && rank_ == down_->root)
      ready = writer_.copy({StepBuffer::output, segment.output}, {StepBuffer::input, segment.input},
                           segment.bytes, {});
    if (down_ != nullptr) go_down(segment, ready);
  }

 private:
  const std::vector<int>& children(const RankTree& tree) const {
    return tree.children[index(rank_)];
  }
  bool stages(int other) const {
    return cluster_.is_staged(rank_, other) && cluster_.place(rank_).on_device;
  }
  int up_lane() const { return 2 * tree_; }
  int down_lane() const { return 2 * tree_ + 1; }

  // Combines what comes from the children, always in the same order, and passes it on. Returns the
  // last step that reads the input or writes the root's output.
  int go_up(const ScheduleSegment& segment) {
    const int parent = up_->parent[index(rank_)];
    const std::int64_t bytes = segment.bytes;
    const StepPlace input{StepBuffer::input, segment.input};
    const StepPlace output{StepBuffer::output, segment.output};
    StepPlace left = input;
    StepPlace sum = output;
    int last = no_step;
    std::vector<int> free;
    const bool combines = !children(*up_).empty();
    if (combines && parent >= 0) {
      sum = sums_.next(writer_);
      free = sums_.before();
    }
    // Backwards: what is served first going down has the longest way up.
    for (std::size_t i = children(*up_).size(); i-- > 0;) {
      const int child = children(*up_)[i];
      StepPlace right;
      int there = no_step;
      SlotPool& at = arrived_[i];
      right = at.next(writer_);
      if (stages(child)) {
        const std::vector<int> before = at.before();
        const StepPlace host = staged_[i].next(writer_);
        const int came = writer_.receive(host, bytes, child, up_lane(), staged_[i].before());
        there = writer_.copy(right, host, bytes, joined(before, {came}));
        staged_[i].used_by(there);
      } else {
        there = writer_.receive(right, bytes, child, up_lane(), at.before());
      }
      last = writer_.reduce(sum, left, right, bytes, joined(free, {there, last}));
      at.used_by(last);
      left = sum;
    }
    if (parent < 0) return combines ? last : writer_.copy(output, input, bytes, {});
    int sent = no_step;
    if (stages(parent)) {
      const StepPlace host = sent_.next(writer_);
      const int copied = writer_.copy(host, left, bytes, joined(sent_.before(), {last}));
      sent = writer_.send(host, bytes, parent, up_lane(), {copied});
      sent_.used_by(sent);
      if (combines) sums_.used_by(copied);
      return copied;
    }
    sent = writer_.send(left, bytes, parent, up_lane(), {last});
    if (combines) sums_.used_by(sent);
    // A sum of its own has left the input alone.
    return combines ? last : sent;
  }

  // Gets the output from the parent and passes it on: between nodes from the host's memory, so that
  // what is forwarded isn't read back.
  void go_down(const ScheduleSegment& segment, int ready) {
    const int parent = down_->parent[index(rank_)];
    const std::int64_t bytes = segment.bytes;
    const StepPlace output{StepBuffer::output, segment.output};
    StepPlace host;
    int in_host = no_step;
    if (parent >= 0 && stages(parent)) {
      host = passed_.next(writer_);
      in_host = writer_.receive(host, bytes, parent, down_lane(), passed_.before());
      ready = writer_.copy(output, host, bytes, {in_host, ready});
      passed_.used_by(ready);
    } else if (parent >= 0) {
      ready = writer_.receive(output, bytes, parent, down_lane(), {ready});
    }
    for (const int child : children(*down_)) {
      if (!stages(child)) {
        writer_.send(output, bytes, child, down_lane(), {ready});
        continue;
      }
      if (in_host == no_step) {
        host = passed_.next(writer_);
        in_host = writer_.copy(host, output, bytes, joined(passed_.before(), {ready}));
      }
      passed_.used_by(writer_.send(host, bytes, child, down_lane(), {in_host}));
    }
  }

  const Cluster& cluster_;
  const int rank_;
  const int tree_;
  const RankTree* const up_;
  const RankTree* const down_;
  StepWriter& writer_;
  SlotPool sums_, sent_, passed_;
  std::vector<SlotPool> arrived_, staged_;
};

}  // namespace

std::string_view name(StepKind kind) noexcept {
  constexpr std::array names{"send", "receive", "copy", "reduce"};
  return names[static_cast<std::size_t>(kind)];
}

RankSteps steps_of(const Cluster& cluster, const SchedulePlan& plan, int rank) {
  StepWriter writer;
  const int trees = static_cast<int>(std::max(plan.up.size(), plan.down.size()));
  std::vector<TreeLane> lanes;
  lanes.reserve(index(trees));
  for (int tree = 0; tree < trees; ++tree) lanes.emplace_back(cluster, plan, tree, rank, writer);
  const bool keeps_own = plan.shape.kind == TreeCollective::all_gather;
  for (const ScheduleSegment& each : plan.segments) lanes[index(each.tree)].add(each, keeps_own);
  return writer.finish();
}

Schedule schedule_of(const Cluster& cluster, const SchedulePlan& plan) {
  Schedule schedule;
  for (int rank = 0; rank < cluster.size(); ++rank)
    schedule.push_back(steps_of(cluster, plan, rank));
  return schedule;
}

namespace {

// Indices of what is to be moved, by how far the ranks are to go round.
std::vector<std::size_t> by_distance(std::span<const Parcel> parcels, int own, int ranks,
                                     bool backwards) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < parcels.size(); ++i)
    if (parcels[i].bytes > 0) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const int distance = backwards ? own - parcels[i].peer : parcels[i].peer - own;
    return (distance + ranks) % ranks;
  });
  return order;
}

}  // namespace

RankSteps direct_steps(int own, int ranks, std::span<const Parcel> sends,
                       std::span<const Parcel> receives) {
  StepWriter writer;
  std::vector<const Parcel*> arriving;  // From this rank itself.
  for (const std::size_t i : by_distance(receives, own, ranks, true)) {
    const Parcel& each = receives[i];
    if (each.peer == own)
      arriving.push_back(&each);
    else
      writer.receive({StepBuffer::output, each.offset}, each.bytes, each.peer, 0, {});
  }
  std::size_t copied = 0;
  std::vector<RankStep> copies;
  for (const std::size_t i : by_distance(sends, own, ranks, false)) {
    const Parcel& each = sends[i];
    if (each.peer != own)
      writer.send({StepBuffer::input, each.offset}, each.bytes, each.peer, 0, {});
    else if (copied < arriving.size())
      copies.push_back({StepKind::copy,
                        -1,
                        0,
                        each.bytes,
                        {StepBuffer::output, arriving[copied++]->offset},
                        {StepBuffer::input, each.offset},
                        {}});
  }
  // Last: meanwhile the others' bytes are on their way.
  for (const RankStep& each : copies) writer.add(each, {});
  return writer.finish();
}

}  // namespace quadriga::message
