// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/cluster.cpp: wires and groups from the description of a machine.
#include "message/schedules/cluster.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace quadriga::message {
namespace {

// Operands read and written by a reduction.
constexpr double bytes_moved_by_reduction = 3;

std::vector<const Device*> accelerators(const Machine& machine) {
  std::vector<const Device*> found;
  for (const Device& each : machine.devices)
    if (each.space != host_space) found.push_back(&each);
  return found;
}

const Route& need_route(const Machine& machine, SpaceId from, SpaceId to) {
  const Route* const route = machine.route(from, to);
  if (route == nullptr)
    fail(Errc::invalid_argument,
         fmt::format("{}: no route from memory {} to {}", machine.name, from, to));
  return *route;
}

// The devices that use each link on their ways to and from the host.
std::map<int, std::set<int>> users_of_links(const Machine& machine,
                                            const std::vector<const Device*>& devices) {
  std::map<int, std::set<int>> users;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (const int link : need_route(machine, devices[i]->space, host_space).links)
      users[link].insert(static_cast<int>(i));
    for (const int link : need_route(machine, host_space, devices[i]->space).links)
      users[link].insert(static_cast<int>(i));
  }
  return users;
}

Wires only_own(const Route& route, const std::map<int, std::set<int>>& users) {
  Wires own;
  for (const int link : route.links)
    if (users.at(link).size() == 1) own.push_back(link);
  return own;
}

// Sets of devices that are nearer to each other than to the rest, the largest first. One that cuts
// across a larger one is left out, so that they nest.
std::vector<std::set<int>> groups_of(const std::vector<const Device*>& devices,
                                     const std::map<int, std::set<int>>& users) {
  std::set<std::set<int>> found;
  std::map<int, std::set<int>> sockets;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i]->node >= 0) sockets[devices[i]->node].insert(static_cast<int>(i));
  for (const auto& [_, socket] : sockets) found.insert(socket);
  for (const auto& [_, sharing] : users) found.insert(sharing);
  std::vector<std::set<int>> sorted;
  for (const std::set<int>& each : found)
    if (each.size() > 1 && each.size() < devices.size()) sorted.push_back(each);
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<std::set<int>> nested;
  for (const std::set<int>& each : sorted) {
    const bool cuts = std::ranges::any_of(nested, [&](const std::set<int>& larger) {
      const auto inside = std::ranges::count_if(each, [&](int d) { return larger.contains(d); });
      return inside > 0 && inside < static_cast<std::ptrdiff_t>(each.size());
    });
    if (!cuts) nested.push_back(each);
  }
  return nested;
}

void check(const Machine& machine, int nodes, const Ports& ports) {
  require(nodes >= 1 && nodes <= 4096,
          fmt::format("{}: {} nodes; expected 1 to 4096", machine.name, nodes));
  require(ports.per_node >= 1 && ports.per_node <= 64,
          fmt::format("{}: {} ports a node; expected 1 to 64", machine.name, ports.per_node));
  require(nodes == 1 || (ports.bytes_per_second > 0 && ports.latency_seconds >= 0),
          fmt::format("{}: a port needs a rate above 0 and a latency", machine.name));
}

}  // namespace

Cluster Cluster::of(const Machine& machine, int nodes, const Ports& ports) {
  check(machine, nodes, ports);
  const std::vector<const Device*> devices = accelerators(machine);
  const std::map<int, std::set<int>> users = users_of_links(machine, devices);
  const std::vector<std::set<int>> groups = groups_of(devices, users);
  Cluster cluster;
  cluster.nodes_ = nodes;
  cluster.ports_per_node_ = ports.per_node;
  cluster.direct_ = ports.at_devices;
  cluster.links_ = static_cast<int>(machine.links.size());
  cluster.devices_ = static_cast<int>(devices.size());
  const int spaces = cluster.devices_ + 1;
  for (int from = 0; from < spaces; ++from)
    for (int to = 0; to < spaces; ++to) {
      const auto space = [&](int i) {
        return i == 0 ? host_space : devices[at(devices, i - 1)]->space;
      };
      cluster.routes_.push_back(from == to ? Wires{}
                                           : need_route(machine, space(from), space(to)).links);
    }
  for (const Device* const each : devices) {
    cluster.own_up_.push_back(only_own(need_route(machine, each->space, host_space), users));
    cluster.own_down_.push_back(only_own(need_route(machine, host_space, each->space), users));
  }
  for (int node = 0; node < nodes; ++node) {
    for (const Link& link : machine.links)
      cluster.wires_.push_back({fmt::format("node {} {}", node, link.name), link.bytes_per_second,
                                link.latency_seconds});
    for (int port = 0; port < ports.per_node; ++port) {
      const double rate = ports.bytes_per_second;
      cluster.wires_.push_back(
          {fmt::format("node {} port {} out", node, port), rate, ports.latency_seconds});
      cluster.wires_.push_back({fmt::format("node {} port {} in", node, port), rate, 0});
    }
    for (int i = 0; i < std::max(1, cluster.devices_); ++i) {
      RankPlace place{node,
                      i,
                      i * ports.per_node / std::max(1, cluster.devices_),
                      i < cluster.devices_,
                      {node},
                      0,
                      0,
                      0};
      for (std::size_t group = 0; group < groups.size(); ++group)
        if (groups[group].contains(i)) place.groups.push_back(static_cast<int>(group));
      if (place.on_device) {
        place.combine_latency_seconds = machine.launch_seconds;
        place.combine_seconds =
            machine.launch_seconds / std::max(1, devices[at(devices, i)]->compute_streams);
      }
      if (place.on_device && machine.has_kernel(*devices[at(devices, i)], "bytes"))
        place.combine_seconds_per_byte =
            bytes_moved_by_reduction *
            machine.kernel_seconds(*devices[at(devices, i)], "bytes", 1e3, 1e9) / 1e9;
      cluster.places_.push_back(std::move(place));
    }
  }
  cluster.order_.resize(cluster.places_.size());
  std::iota(cluster.order_.begin(), cluster.order_.end(), 0);
  return cluster;
}

Cluster Cluster::host(int ranks, double bytes_per_second, double latency_seconds) {
  require(ranks >= 1, "a host needs a rank");
  Cluster cluster;
  cluster.devices_ = ranks;
  cluster.links_ = ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    cluster.wires_.push_back(
        {fmt::format("core {}", rank), bytes_per_second, latency_seconds, latency_seconds});
    cluster.places_.push_back({0, rank, 0, false, {0}, 0, 0, 1 / bytes_per_second});
    cluster.order_.push_back(rank);
  }
  // The receiver's core reads.
  for (int from = 0; from <= ranks; ++from)
    for (int to = 0; to <= ranks; ++to)
      cluster.routes_.push_back(from == to || to == 0 ? Wires{} : Wires{to - 1});
  return cluster;
}

Cluster Cluster::switched(int ranks, double bytes_per_second, double latency_seconds,
                          double busy_seconds) {
  require(ranks >= 1, "a switch needs a rank");
  Cluster cluster;
  cluster.devices_ = ranks;
  cluster.links_ = 2 * ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    cluster.wires_.push_back({fmt::format("device {} out", rank), bytes_per_second, 0});
    cluster.wires_.push_back(
        {fmt::format("device {} in", rank), bytes_per_second, latency_seconds, busy_seconds});
    cluster.places_.push_back(
        {0, rank, 0, true, {0}, latency_seconds, busy_seconds, 1 / bytes_per_second});
    cluster.order_.push_back(rank);
  }
  // Nothing passes through the host, which is 0 here.
  for (int from = 0; from <= ranks; ++from)
    for (int to = 0; to <= ranks; ++to)
      cluster.routes_.push_back(
          from == to || from == 0 || to == 0 ? Wires{} : Wires{2 * (from - 1), 2 * (to - 1) + 1});
  return cluster;
}

Cluster Cluster::ordered(std::span<const int> order) const {
  std::vector<int> sorted(order.begin(), order.end());
  std::ranges::sort(sorted);
  std::vector<int> all(at(order_, size()));
  std::iota(all.begin(), all.end(), 0);
  require(sorted == all, fmt::format("the order of ranks isn't one of 0 to {}", size() - 1));
  Cluster other = *this;
  for (std::size_t i = 0; i < order.size(); ++i)
    other.order_[i] = order_[static_cast<std::size_t>(order[i])];
  return other;
}

bool Cluster::is_staged(int from, int to) const {
  return place(from).node != place(to).node && !direct_;
}

Wires Cluster::local(int node, int from, int to) const {
  const int first = node * (links_ + 2 * ports_per_node_);
  Wires wires = routes_[at(routes_, from * (devices_ + 1) + to)];
  for (int& each : wires) each += first;
  return wires;
}

Wires Cluster::between(int from, int to) const {
  const RankPlace& a = place(from);
  const RankPlace& b = place(to);
  if (a.node == b.node) return local(a.node, a.index + 1, b.index + 1);
  const int stride = links_ + 2 * ports_per_node_;
  Wires wires;
  if (direct_ && a.on_device)
    for (const int link : own_up_[at(own_up_, a.index)]) wires.push_back(a.node * stride + link);
  wires.push_back(a.node * stride + links_ + 2 * a.port);
  wires.push_back(b.node * stride + links_ + 2 * b.port + 1);
  if (direct_ && b.on_device)
    for (const int link : own_down_[at(own_down_, b.index)])
      wires.push_back(b.node * stride + link);
  return wires;
}

Wires Cluster::to_host(int rank) const {
  const RankPlace& from = place(rank);
  return from.on_device ? local(from.node, from.index + 1, 0) : Wires{};
}

Wires Cluster::from_host(int rank) const {
  const RankPlace& to = place(rank);
  return to.on_device ? local(to.node, 0, to.index + 1) : Wires{};
}

}  // namespace quadriga::message
