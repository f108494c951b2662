// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/schedule_cases.cpp: a plain interpreter of schedules.
#include "unit/message/schedule_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

namespace quadriga::message::testing {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

Machine draw_machine(Random& random) {
  Machine machine;
  machine.name = "drawn";
  const int switches = 1 + static_cast<int>(random.below(3));
  const int devices = static_cast<int>(random.below(3)) * switches;
  const auto link = [&](const std::string& name) {
    machine.links.push_back({name, 1e9 * static_cast<double>(1 + random.below(20)), 1e-6});
    return static_cast<int>(machine.links.size()) - 1;
  };
  const auto space = [](int device) { return static_cast<SpaceId>(device + 1); };
  const int host = link("host");
  std::vector<int> up, down, own;
  for (int i = 0; i < switches; ++i) {
    up.push_back(link("up"));
    down.push_back(link("down"));
  }
  for (int i = 0; i < devices; ++i) {
    Device device;
    device.name = fmt::format("gpu{}", i);
    device.space = space(i);
    device.node = random.chance(0.5) ? i % 2 : -1;
    machine.devices.push_back(device);
    own.push_back(link(device.name));
    const auto at = index(i % switches);
    machine.routes.push_back({host_space, space(i), {host, down[at], own.back()}, 0});
    machine.routes.push_back({space(i), host_space, {own.back(), up[at], host}, 0});
  }
  for (int a = 0; a < devices; ++a)
    for (int b = 0; b < devices; ++b)
      if (a != b) machine.routes.push_back({space(a), space(b), {own[index(a)], own[index(b)]}, 0});
  return machine;
}

class Interpreter {
 public:
  Interpreter(Random& random, const Schedule& schedule, std::vector<RankMemory> input,
              const std::vector<std::size_t>& output_bytes, std::vector<RankMemory> outputs,
              bool in_order)
      : random_(random), schedule_(schedule), in_order_(in_order) {
    for (std::size_t rank = 0; rank < schedule.size(); ++rank) {
      const RankSteps& own = schedule[rank];
      memory_.push_back(
          {std::move(input[rank]),
           outputs.empty() ? RankMemory(output_bytes[rank]) : std::move(outputs[rank]),
           RankMemory(static_cast<std::size_t>(own.work_bytes)),
           RankMemory(static_cast<std::size_t>(own.stage_bytes))});
      states_.emplace_back(own.steps.size(), State::open);
      for (std::size_t i = 0; i < own.steps.size(); ++i) {
        const RankStep& step = own.steps[i];
        const int self = static_cast<int>(rank);
        if (step.kind == StepKind::send)
          lanes_[{self, step.peer, step.lane}].sends.push_back(i);
        else if (step.kind == StepKind::receive)
          lanes_[{step.peer, self, step.lane}].receives.push_back(i);
      }
    }
  }

  CarriedOut run() {
    for (;;) {
      std::vector<std::function<void()>> possible;
      find_local(possible);
      find_transfers(possible);
      if (possible.empty()) break;
      possible[random_.below(possible.size())]();
    }
    CarriedOut result;
    for (std::size_t rank = 0; rank < schedule_.size(); ++rank) {
      result.output.push_back(
          std::move(memory_[rank][index(static_cast<int>(StepBuffer::output))]));
      const auto open =
          std::ranges::count_if(states_[rank], [](State s) { return s != State::ended; });
      if (open > 0 && result.fault.empty())
        result.fault = fmt::format("rank {} has {} steps left", rank, open);
    }
    if (!fault_.empty()) result.fault = fault_;
    return result;
  }

 private:
  enum class State : std::uint8_t { open, begun, ended };
  struct Lane {
    std::vector<std::size_t> sends, receives;
    std::size_t begun = 0, ended = 0;
  };

  bool is_ready(std::size_t rank, std::size_t i) const {
    const RankSteps& own = schedule_[rank];
    return std::ranges::all_of(own.awaited(own.steps[i]), [&](std::uint32_t each) {
      return each < i && states_[rank][each] == State::ended;
    });
  }
  std::byte* at(std::size_t rank, const StepPlace& place, std::int64_t bytes) {
    RankMemory& memory = memory_[rank][static_cast<std::size_t>(place.buffer)];
    if (place.offset < 0 || place.offset + bytes > static_cast<std::int64_t>(memory.size())) {
      fault_ = fmt::format("rank {} uses bytes {} to {} of {}", rank, place.offset,
                           place.offset + bytes, memory.size());
      return nullptr;
    }
    return memory.data() + place.offset;
  }

  void find_local(std::vector<std::function<void()>>& possible) {
    for (std::size_t rank = 0; rank < schedule_.size(); ++rank) {
      const RankSteps& own = schedule_[rank];
      // Far from the first open step nothing is ready.
      std::size_t& from = first_[rank];
      while (from < own.steps.size() && states_[rank][from] == State::ended) ++from;
      for (std::size_t i = from; i < std::min(own.steps.size(), from + 64); ++i) {
        const StepKind kind = own.steps[i].kind;
        if (kind == StepKind::send || kind == StepKind::receive) continue;
        if (states_[rank][i] == State::open && is_ready(rank, i))
          possible.push_back([this, rank, i] { take(rank, i); });
      }
    }
  }

  void take(std::size_t rank, std::size_t i) {
    const RankStep& step = schedule_[rank].steps[i];
    std::byte* const into = at(rank, step.into, step.bytes);
    const std::byte* const from = at(rank, step.from, step.bytes);
    const std::byte* const with =
        step.kind == StepKind::reduce ? at(rank, step.with, step.bytes) : from;
    states_[rank][i] = State::ended;
    if (into == nullptr || from == nullptr || with == nullptr) return;
    for (std::int64_t byte = 0; byte < step.bytes; ++byte) {
      const auto a = static_cast<unsigned>(from[byte]);
      const auto b = static_cast<unsigned>(with[byte]);
      if (step.kind == StepKind::copy)
        into[byte] = from[byte];
      else
        into[byte] = static_cast<std::byte>(in_order_ ? a * 5 + b * 3 + 1 : a + b);
    }
  }

  void find_transfers(std::vector<std::function<void()>>& possible) {
    for (auto& [key, lane] : lanes_) {
      const auto sender = index(std::get<0>(key));
      const auto receiver = index(std::get<1>(key));
      Lane* const of = &lane;
      if (lane.begun < std::min(lane.sends.size(), lane.receives.size()) &&
          lane.begun - lane.ended < transfers_in_flight &&
          is_ready(sender, lane.sends[lane.begun]) && is_ready(receiver, lane.receives[lane.begun]))
        possible.push_back([this, of, receiver] {
          const RankStep& step = schedule_[receiver].steps[of->receives[of->begun++]];
          if (std::byte* const into = at(receiver, step.into, step.bytes))
            std::fill_n(into, step.bytes, static_cast<std::byte>(random_.below(256)));
        });
      if (lane.ended < lane.begun)
        possible.push_back([this, of, sender, receiver] { end(*of, sender, receiver); });
    }
  }

  void end(Lane& lane, std::size_t sender, std::size_t receiver) {
    const std::size_t send = lane.sends[lane.ended];
    const std::size_t receive = lane.receives[lane.ended++];
    const RankStep& from = schedule_[sender].steps[send];
    const RankStep& into = schedule_[receiver].steps[receive];
    states_[sender][send] = State::ended;
    states_[receiver][receive] = State::ended;
    if (from.bytes != into.bytes) {
      fault_ = fmt::format("rank {} sends {} bytes, rank {} expects {}", sender, from.bytes,
                           receiver, into.bytes);
      return;
    }
    const std::byte* const source = at(sender, from.from, from.bytes);
    std::byte* const target = at(receiver, into.into, into.bytes);
    if (source != nullptr && target != nullptr) std::copy_n(source, from.bytes, target);
  }

  Random& random_;
  const Schedule& schedule_;
  const bool in_order_;
  std::vector<std::vector<RankMemory>> memory_;
  std::vector<std::vector<State>> states_;
  std::map<std::size_t, std::size_t> first_;
  std::map<std::tuple<int, int, int>, Lane> lanes_;
  std::string fault_;
};

}  // namespace

Cluster draw_cluster(Random& random) {
  if (random.chance(0.3)) return Cluster::host(1 + static_cast<int>(random.below(12)), 1e10, 1e-6);
  const int nodes = 1 + static_cast<int>(random.below(5));
  const int ports = 1 + static_cast<int>(random.below(3));
  const Cluster cluster =
      Cluster::of(draw_machine(random), nodes, {ports, 5e9, 2e-6, random.chance(0.3)});
  std::vector<int> order(index(cluster.size()));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return cluster.ordered(order);
}

CollectiveShape draw_shape(Random& random, const Cluster& cluster) {
  CollectiveShape shape;
  shape.kind = static_cast<TreeCollective>(random.below(5));
  shape.root = static_cast<int>(random.below(static_cast<std::uint64_t>(cluster.size())));
  shape.element_bytes = random.chance(0.5) ? 1 : 8;
  const bool parts =
      shape.kind == TreeCollective::reduce_scatter || shape.kind == TreeCollective::all_gather;
  for (int i = 0; i < (parts ? cluster.size() : 1); ++i)
    shape.bytes.push_back(static_cast<std::int64_t>(random.below(random.chance(0.2) ? 1 : 40)) *
                          shape.element_bytes);
  return shape;
}

TreeOptions draw_options(Random& random) {
  TreeOptions options;
  for (std::uint64_t i = random.below(4); i > 0; --i)
    options.shapes.push_back(tree_shapes[random.below(tree_shapes.size())]);
  if (random.chance(0.7)) options.segment_bytes = 1 + static_cast<std::int64_t>(random.below(60));
  if (random.chance(0.3)) options.leaders = 1 + static_cast<int>(random.below(4));
  if (random.chance(0.5)) options.rotates = random.chance(0.5);
  options.reproducible = random.chance(0.2);
  return options;
}

CarriedOut carry_out(Random& random, const Schedule& schedule, std::vector<RankMemory> input,
                     const std::vector<std::size_t>& output_bytes, std::vector<RankMemory> outputs,
                     bool in_order) {
  return Interpreter(random, schedule, std::move(input), output_bytes, std::move(outputs), in_order)
      .run();
}

}  // namespace quadriga::message::testing
