// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/virtual_links.cpp: flows that begin, share the links, and end.
#include "device/emulated/virtual_links.h"

#include <algorithm>

#include "device/emulated/virtual_times.h"

namespace quadriga {

VirtualLinks::VirtualLinks(const Machine& machine) : share_(machine) {
  for (const Route& route : machine.routes) {
    double seconds = 0;
    for (const int link : route.links) seconds += machine.links[link].latency_seconds;
    latencies_.push_back(seconds * 1e9);
  }
}

Nanoseconds VirtualLinks::latency(int route) const {
  return whole_nanoseconds(latencies_[static_cast<std::size_t>(route)]);
}

void VirtualLinks::begin(Nanoseconds now, StreamId stream, std::uint64_t sequence, int route,
                         double bytes, double limit) {
  flows_.push_back({stream, sequence, bytes, 0, now, never});
  routes_.push_back(route);
  limits_.push_back(limit);
  changed_ = true;
}

void VirtualLinks::share(Nanoseconds now) {
  changed_ = false;
  rates_.resize(flows_.size());
  share_.rates(routes_, rates_, limits_);
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    const double rate = rates_[i] * 1e-9;
    if (rate == flow.bytes_per_nanosecond) continue;
    flow.bytes_left -= flow.bytes_per_nanosecond * static_cast<double>(now - flow.updated);
    flow.bytes_left = std::max(flow.bytes_left, 0.0);
    flow.bytes_per_nanosecond = rate;
    flow.updated = now;
    flow.end = now + whole_nanoseconds(flow.bytes_left / rate);
  }
}

Nanoseconds VirtualLinks::next_end(Nanoseconds now) {
  if (changed_) share(now);
  Nanoseconds next = never;
  for (const Flow& flow : flows_) next = std::min(next, flow.end);
  return next;
}

// The last one takes its place.
void VirtualLinks::take(std::size_t index) {
  flows_[index] = flows_.back();
  flows_.pop_back();
  routes_[index] = routes_.back();
  routes_.pop_back();
  limits_[index] = limits_.back();
  limits_.pop_back();
  changed_ = true;
}

}  // namespace quadriga
