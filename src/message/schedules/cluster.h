// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/cluster.h: where ranks are, and the wires between them; a pure value.
#pragma once

#include <quadriga/machine.h>

#include <span>
#include <string>
#include <vector>

namespace quadriga::message {

/// A link or one direction of a port. Bytes cross it in the order in which they come to it.
struct Wire {
  std::string name;
  double bytes_per_second = 0;
  double latency_seconds = 0;
  /// Of the latency, what a transfer keeps it busy with: a core that reads does nothing else.
  double occupied_seconds = 0;
};

/// The wires that a transfer crosses one after the other.
using Wires = std::vector<int>;

/// Where a rank's data are.
struct RankPlace {
  int node = 0;
  int index = 0;  ///< Among the node's places; neither changes with the order of ranks.
  int port = 0;
  bool on_device = false;
  /// From the outermost to the innermost: the node, socket or switch that it belongs to. Places
  /// with the same numbers so far are near each other.
  std::vector<int> groups;
  double combine_latency_seconds = 0;  ///< From the start of a reduction of nothing to its end,
  double combine_seconds = 0;          ///< and how long it keeps others from beginning.
  double combine_seconds_per_byte = 0;
};

/// How nodes are joined.
struct Ports {
  int per_node = 1;
  double bytes_per_second = 0;  ///< Each way.
  double latency_seconds = 0;
  /// Whether they move data of devices directly, by the links that no other device uses; else only
  /// data in the memory of the host.
  bool at_devices = false;
};

/// Ranks on the devices of equal nodes, or on one host.
class Cluster {
 public:
  /// A rank on each accelerator of so many copies of a machine; without accelerators, a rank a
  /// node. Groups are its NUMA nodes, and devices that share links on their way to the host.
  /// Errors: invalid_argument for counts and rates, or naming devices that lack a route.
  static Cluster of(const Machine& machine, int nodes, const Ports& ports);
  /// Ranks that share the memory of one host, each of which reads with its own core.
  static Cluster host(int ranks, double bytes_per_second, double latency_seconds);
  /// A rank on each of the devices of one host, all joined by a switch: each reads and is read at
  /// this rate, and combines as fast. Who reads is busy for a part of the latency.
  static Cluster switched(int ranks, double bytes_per_second, double latency_seconds,
                          double busy_seconds);

  int size() const noexcept { return static_cast<int>(order_.size()); }
  int nodes() const noexcept { return nodes_; }
  int ports_per_node() const noexcept { return ports_per_node_; }
  const RankPlace& place(int rank) const { return places_[at(order_, rank)]; }
  const std::vector<Wire>& wires() const noexcept { return wires_; }

  /// The same with ranks elsewhere: rank i where rank order[i] was.
  /// Errors: invalid_argument if that is no permutation.
  Cluster ordered(std::span<const int> order) const;

  /// Whether a transfer between the two goes from and to the memory of their hosts.
  bool is_staged(int from, int to) const;
  Wires between(int from, int to) const;
  Wires to_host(int rank) const;
  Wires from_host(int rank) const;

 private:
  template <class Vector>
  static std::size_t at(const Vector&, int index) {
    return static_cast<std::size_t>(index);
  }
  Wires local(int node, int from, int to) const;

  int nodes_ = 1;
  int ports_per_node_ = 1;
  bool direct_ = false;
  int links_ = 0;    ///< Of a node; they come before its ports.
  int devices_ = 0;  ///< Of a node.
  std::vector<Wire> wires_;
  std::vector<RankPlace> places_;
  std::vector<int> order_;                ///< Place by rank.
  std::vector<Wires> routes_;             ///< Within a node: from and to the host (0) and devices.
  std::vector<Wires> own_up_, own_down_;  ///< What only one device uses of its way to the host.
};

}  // namespace quadriga::message
