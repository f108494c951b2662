// SPDX-License-Identifier: BSD-3-Clause
// src/device/fair_share.h: max-min fair rates of the copies that share links. Pure.
#pragma once

#include <quadriga/machine.h>

#include <cstdint>
#include <span>
#include <vector>

namespace quadriga {

/// Max-min fair rates of flows over the routes of a machine, by progressive filling.
///
/// The rates of all flows rise together; when a link is full, the flows that cross it keep their
/// rate, as one does that has come to its own limit, and the others go on rising. A flow that
/// crosses a link twice uses twice its rate of it.
/// Source:  Bertsekas and Gallager, Data Networks, section 6.5.2.
class FairShare {
 public:
  /// A link that a route crosses.
  struct Use {
    int link = 0;
    double crossings = 0;
  };

  explicit FairShare(const Machine& machine);

  /// Writes the rate in bytes per second of each flow, given by the index of its route and what it
  /// can't exceed; no `limits`: none has one.
  /// Cost:    flows * links of a route + rounds * (flows + links in use); allocates nothing.
  void rates(std::span<const int> flow_routes, std::span<double> out,
             std::span<const double> limits = {});

  /// Links that can limit a flow of this route: all but those that another link implies.
  std::span<const Use> limiting_links(int route) const noexcept { return uses_[route]; }

 private:
  void drop_implied_links();
  bool implies(std::size_t strong, std::size_t weak) const noexcept;
  double crossings(std::size_t route, std::size_t link) const noexcept {
    return crossings_[route * capacity_.size() + link];
  }
  void start_filling(std::span<const int> flow_routes);
  int fullest_link(double before, double& level) const noexcept;
  void freeze(int route, double rate);

  std::size_t routes_ = 0;
  std::vector<double> capacity_;        // Of each link.
  std::vector<double> crossings_;       // Of each route over each link, 0 if implied by another.
  std::vector<std::vector<Use>> uses_;  // Of each route.
  std::vector<double> left_;            // Capacity of each link not yet given away.
  std::vector<double> weight_;          // Crossings of each link by flows that still rise.
  std::vector<int> links_in_use_;
};

}  // namespace quadriga
