// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/home_links.cpp: rates of copies while others share their links.
#include "linalg/home_links.h"

#include <algorithm>

namespace quadriga::linalg {
namespace {

int index_of(const Machine& machine, SpaceId from, SpaceId to) {
  const Route* const route = from == to ? nullptr : machine.route(from, to);
  return route ? static_cast<int>(route - machine.routes.data()) : -1;
}

}  // namespace

HomeLinks::HomeLinks(const Machine& machine, const DeviceGroup& group)
    : machine_(machine), shares_(machine), size_(group.devices.size()) {
  for (const DeviceId device : group.devices) {
    const SpaceId space = machine.devices[device].space;
    loads_.push_back(index_of(machine, group.home, space));
    stores_.push_back(index_of(machine, space, group.home));
    for (const DeviceId other : group.devices)
      between_.push_back(index_of(machine, space, machine.devices[other].space));
  }
}

double HomeLinks::rate(int route, double run_bytes) const noexcept {
  if (route < 0) return std::numeric_limits<double>::infinity();
  return machine_.copy_rate(machine_.routes[static_cast<std::size_t>(route)], run_bytes);
}

std::vector<double> HomeLinks::together(const std::vector<int>& routes, double run_bytes) {
  std::vector<int> flows;
  std::vector<double> limits;
  for (const int route : routes) {
    if (route < 0) continue;
    flows.push_back(route);
    limits.push_back(rate(route, run_bytes));
  }
  std::vector<double> shares(flows.size());
  shares_.rates(flows, shares, limits);
  std::vector<double> rates;
  auto share = shares.begin();
  for (const int route : routes)
    rates.push_back(route < 0 ? std::numeric_limits<double>::infinity() : *share++);
  return rates;
}

std::vector<double> HomeLinks::key() const {
  std::vector<double> key;
  for (const std::vector<int>* const routes : {&loads_, &stores_, &between_})
    for (const int route : *routes) {
      key.push_back(route);
      if (route < 0) continue;
      for (const int index : machine_.routes[static_cast<std::size_t>(route)].links) {
        const Link& link = machine_.links[static_cast<std::size_t>(index)];
        key.insert(key.end(),
                   {static_cast<double>(index), link.bytes_per_second, link.latency_seconds});
        for (const auto& [run, share] : link.runs) key.insert(key.end(), {run, share});
      }
    }
  return key;
}

double CopyClock::next_end() {
  if (changed_) share();
  double next = std::numeric_limits<double>::infinity();
  for (const Queue& queue : queues_)
    if (queue.runs) next = std::min(next, now_ + std::max(0.0, queue.left) / queue.rate);
  return next;
}

void CopyClock::share() {
  changed_ = false;
  routes_.clear();
  limits_.clear();
  for (Queue& queue : queues_) {
    if (!queue.runs) continue;
    const Copy& copy = queue.copies.front();
    queue.rate = copy.limit;
    if (copy.route < 0) continue;
    routes_.push_back(copy.route);
    limits_.push_back(copy.limit);
  }
  rates_.resize(routes_.size());
  home_links_.shares().rates(routes_, rates_, limits_);
  std::size_t at = 0;
  for (Queue& queue : queues_)
    if (queue.runs && queue.copies.front().route >= 0) queue.rate = rates_[at++];
}

}  // namespace quadriga::linalg
