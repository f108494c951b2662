// SPDX-License-Identifier: BSD-3-Clause
// src/device/fair_share.cpp: progressive filling over the links that can be a limit.
#include "device/fair_share.h"

#include <algorithm>
#include <limits>

namespace quadriga {

FairShare::FairShare(const Machine& machine) : routes_(machine.routes.size()) {
  for (const Link& link : machine.links) capacity_.push_back(link.bytes_per_second);
  crossings_.assign(routes_ * capacity_.size(), 0);
  for (std::size_t route = 0; route < routes_; ++route) {
    for (const int link : machine.routes[route].links) {
      crossings_[route * capacity_.size() + link] += 1;
    }
  }
  drop_implied_links();
  uses_.resize(routes_);
  for (std::size_t route = 0; route < routes_; ++route) {
    for (std::size_t link = 0; link < capacity_.size(); ++link) {
      if (crossings(route, link) > 0) {
        uses_[route].push_back({static_cast<int>(link), crossings(route, link)});
      }
    }
  }
  left_.assign(capacity_.size(), 0);
  weight_.assign(capacity_.size(), 0);
  links_in_use_.reserve(capacity_.size());
}

// If every route crosses `strong` at least as often as `weak`, and weak has no less capacity, then
// weak is never full before strong is: what it demands of the rates holds already.
bool FairShare::implies(std::size_t strong, std::size_t weak) const noexcept {
  if (capacity_[weak] < capacity_[strong]) return false;
  for (std::size_t route = 0; route < routes_; ++route) {
    if (crossings(route, weak) > crossings(route, strong)) return false;
  }
  return true;
}

void FairShare::drop_implied_links() {
  for (std::size_t weak = 0; weak < capacity_.size(); ++weak) {
    for (std::size_t strong = 0; strong < capacity_.size(); ++strong) {
      if (strong == weak || !implies(strong, weak)) continue;
      for (std::size_t route = 0; route < routes_; ++route) {
        crossings_[route * capacity_.size() + weak] = 0;
      }
      break;
    }
  }
}

void FairShare::start_filling(std::span<const int> flow_routes) {
  for (const int link : links_in_use_) weight_[link] = 0;
  links_in_use_.clear();
  for (const int route : flow_routes) {
    for (const Use& use : uses_[route]) {
      if (weight_[use.link] == 0) {
        links_in_use_.push_back(use.link);
        left_[use.link] = capacity_[use.link];
      }
      weight_[use.link] += use.crossings;
    }
  }
}

void FairShare::freeze(int route, double rate) {
  for (const Use& use : uses_[route]) {
    left_[use.link] -= rate * use.crossings;
    weight_[use.link] -= use.crossings;
  }
}

// The link that the rising flows fill first, and the rate at which they do.
int FairShare::fullest_link(double before, double& level) const noexcept {
  int fullest = -1;
  level = std::numeric_limits<double>::infinity();
  for (const int link : links_in_use_) {
    if (weight_[link] <= 0) continue;
    // Levels never fall; only rounding could make it seem so.
    const double link_level = std::max(left_[link] / weight_[link], before);
    if (link_level < level) {
      level = link_level;
      fullest = link;
    }
  }
  return fullest;
}

void FairShare::rates(std::span<const int> flow_routes, std::span<double> out,
                      std::span<const double> limits) {
  constexpr double rising = -1;
  start_filling(flow_routes);
  std::ranges::fill(out, rising);
  double before = 0;
  for (std::size_t risen = 0; risen < flow_routes.size();) {
    double level = 0;
    const int fullest = fullest_link(before, level);
    double limit = std::numeric_limits<double>::infinity();
    for (std::size_t flow = 0; flow < limits.size(); ++flow)
      if (out[flow] == rising) limit = std::min(limit, limits[flow]);
    // Those that come to their limits before the link is full stop there.
    const bool by_limit = limit < level;
    if (by_limit) level = limit;
    for (std::size_t flow = 0; flow < flow_routes.size(); ++flow) {
      if (out[flow] != rising) continue;
      const bool stops =
          by_limit ? limits[flow] == limit : crossings(flow_routes[flow], fullest) > 0;
      if (!stops) continue;
      out[flow] = level;
      freeze(flow_routes[flow], level);
      ++risen;
    }
    before = level;
  }
}

}  // namespace quadriga
