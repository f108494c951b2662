// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/simulation.cpp: an event queue of transfers that cross wires.
#include "message/schedules/simulation.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <tuple>

namespace quadriga::message {
namespace {

struct StepName {
  int rank = 0;
  std::uint32_t step = 0;
};

// Bytes on their way; a copy has no receive.
struct SimulatedFlow {
  StepName step, receive;
  bool is_pair = false;
  std::size_t lane = 0;
  double bytes = 0;
  double ends = 0;
  std::size_t crossed = 0;
  Wires wires;
};

struct Lane {
  std::deque<StepName> sends, receives;  // Listed, not begun.
  std::deque<bool> send_ready, receive_ready;
  std::size_t first_send = 0, first_receive = 0;  // Numbers of the first ones.
  int in_flight = 0;
};

class Simulation {
 public:
  Simulation(const Cluster& cluster, const Schedule& schedule)
      : cluster_(cluster), schedule_(schedule), free_(cluster.wires().size(), 0) {
    run_.wire_bytes.assign(cluster.wires().size(), 0);
    reducing_.assign(schedule.size(), 0);
    for (std::size_t rank = 0; rank < schedule.size(); ++rank) enter(static_cast<int>(rank));
  }

  SimulatedRun run() {
    for (std::size_t rank = 0; rank < schedule_.size(); ++rank)
      for (std::uint32_t step = 0; step < schedule_[rank].steps.size(); ++step)
        if (waits_[rank][step] == 0) make_ready({static_cast<int>(rank), step});
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      if (event.kind == Event::crosses)
        cross(event.what);
      else if (event.kind == Event::arrived)
        end_flow(event.what);
      else
        end(reductions_[event.what]);
    }
    check_all_ended();
    run_.seconds = now_;
    return std::move(run_);
  }

 private:
  struct Event {
    enum Kind : std::uint8_t { crosses, arrived, reduced };
    double at = 0;
    std::uint64_t number = 0;
    Kind kind = crosses;
    std::size_t what = 0;
    bool operator>(const Event& other) const {
      return std::tie(at, number) > std::tie(other.at, other.number);
    }
  };

  const RankStep& step(StepName name) const { return schedule_[index(name.rank)].steps[name.step]; }

  void enter(int rank) {
    const RankSteps& own = schedule_[index(rank)];
    waits_.emplace_back(own.steps.size(), 0);
    followers_.emplace_back(own.steps.size());
    lanes_of_.emplace_back(own.steps.size());
    run_.steps += own.steps.size();
    for (std::uint32_t i = 0; i < own.steps.size(); ++i) {
      const RankStep& each = own.steps[i];
      for (const std::uint32_t before : own.awaited(each)) {
        followers_.back()[before].push_back(i);
        ++waits_.back()[i];
      }
      if (each.kind != StepKind::send && each.kind != StepKind::receive) continue;
      const bool sends = each.kind == StepKind::send;
      const auto key =
          sends ? std::tuple(rank, each.peer, each.lane) : std::tuple(each.peer, rank, each.lane);
      const auto [found, is_new] = known_.try_emplace(key, lanes_.size());
      if (is_new) lanes_.emplace_back();
      Lane& lane = lanes_[found->second];
      (sends ? lane.sends : lane.receives).push_back({rank, i});
      (sends ? lane.send_ready : lane.receive_ready).push_back(false);
      const std::size_t number = (sends ? lane.sends : lane.receives).size() - 1;
      lanes_of_.back()[i] = {found->second, number};
    }
  }

  void make_ready(StepName name) {
    const RankStep& what = step(name);
    if (what.kind == StepKind::send || what.kind == StepKind::receive) {
      const auto [number, place] = lanes_of_[index(name.rank)][name.step];
      Lane& lane = lanes_[number];
      if (what.kind == StepKind::send)
        lane.send_ready[place - lane.first_send] = true;
      else
        lane.receive_ready[place - lane.first_receive] = true;
      return start_lane(number);
    }
    const bool up = what.into.buffer == StepBuffer::stage && what.kind == StepKind::copy;
    const bool down = what.from.buffer == StepBuffer::stage && what.kind == StepKind::copy;
    if (up != down)
      return start({name,
                    {},
                    false,
                    0,
                    static_cast<double>(what.bytes),
                    0,
                    0,
                    up ? cluster_.to_host(name.rank) : cluster_.from_host(name.rank)});
    double& free = reducing_[index(name.rank)];
    const RankPlace& place = cluster_.place(name.rank);
    const double begins = std::max(free, now_);
    free = begins + place.combine_seconds +
           static_cast<double>(what.bytes) * place.combine_seconds_per_byte;
    reductions_.push_back(name);
    push(std::max(free, begins + place.combine_latency_seconds), Event::reduced,
         reductions_.size() - 1);
  }

  void start_lane(std::size_t number) {
    Lane& lane = lanes_[number];
    while (lane.in_flight < transfers_in_flight && !lane.sends.empty() && !lane.receives.empty() &&
           lane.send_ready.front() && lane.receive_ready.front()) {
      const StepName send = lane.sends.front();
      const StepName receive = lane.receives.front();
      lane.sends.pop_front();
      lane.receives.pop_front();
      lane.send_ready.pop_front();
      lane.receive_ready.pop_front();
      ++lane.first_send;
      ++lane.first_receive;
      ++lane.in_flight;
      if (step(send).bytes != step(receive).bytes)
        fail(Errc::internal,
             fmt::format("rank {} sends {} bytes to rank {}, which expects {}", send.rank,
                         step(send).bytes, receive.rank, step(receive).bytes));
      start({send, receive, true, number, static_cast<double>(step(send).bytes), 0, 0,
             cluster_.between(send.rank, receive.rank)});
    }
  }

  void start(SimulatedFlow flow) {
    double latency = 0;
    for (const int each : flow.wires) latency += cluster_.wires()[index(each)].latency_seconds;
    std::size_t place = flows_.size();
    if (unused_.empty()) {
      flows_.push_back(std::move(flow));
    } else {
      place = unused_.back();
      unused_.pop_back();
      flows_[place] = std::move(flow);
    }
    push(now_ + latency, Event::crosses, place);
  }

  void cross(std::size_t place) {
    SimulatedFlow& flow = flows_[place];
    if (flow.crossed == flow.wires.size())
      return push(std::max(now_, flow.ends), Event::arrived, place);
    const std::size_t wire = index(flow.wires[flow.crossed++]);
    const double seconds = flow.bytes / cluster_.wires()[wire].bytes_per_second;
    const double begins = std::max(now_, free_[wire]);
    free_[wire] = begins + seconds;
    flow.ends = std::max(flow.ends, begins + seconds);
    run_.wire_bytes[wire] += flow.bytes;
    push(begins, Event::crosses, place);
  }

  void end_flow(std::size_t place) {
    const SimulatedFlow flow = std::move(flows_[place]);
    unused_.push_back(place);
    end(flow.step);
    if (!flow.is_pair) return;
    end(flow.receive);
    --lanes_[flow.lane].in_flight;
    start_lane(flow.lane);
  }

  void end(StepName name) {
    ++ended_;
    for (const std::uint32_t each : followers_[index(name.rank)][name.step])
      if (--waits_[index(name.rank)][each] == 0) make_ready({name.rank, each});
  }

  void check_all_ended() const {
    if (ended_ == run_.steps) return;
    for (const Lane& lane : lanes_)
      for (const auto& open : {lane.sends, lane.receives})
        if (!open.empty())
          fail(Errc::internal, fmt::format("the schedule stops: rank {}, step {}, {} with rank {}",
                                           open.front().rank, open.front().step,
                                           name(step(open.front()).kind), step(open.front()).peer));
    fail(Errc::internal, "the schedule stops");
  }

  void push(double at, Event::Kind kind, std::size_t what) {
    events_.push({at, number_++, kind, what});
  }

  const Cluster& cluster_;
  const Schedule& schedule_;
  SimulatedRun run_;
  double now_ = 0;
  std::uint64_t number_ = 0;
  std::size_t ended_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<double> free_;      // By wire: when it is through with all that came.
  std::vector<double> reducing_;  // The same by rank, for reductions.
  std::vector<StepName> reductions_;
  std::vector<SimulatedFlow> flows_;
  std::vector<std::size_t> unused_;
  std::map<std::tuple<int, int, int>, std::size_t> known_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<std::uint32_t>> waits_;
  std::vector<std::vector<std::vector<std::uint32_t>>> followers_;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> lanes_of_;
};

}  // namespace

SimulatedRun simulate(const Cluster& cluster, const Schedule& schedule) {
  require(schedule.size() == index(cluster.size()), "a schedule needs the steps of all ranks");
  return Simulation(cluster, schedule).run();
}

}  // namespace quadriga::message
