// SPDX-License-Identifier: BSD-3-Clause
// src/memory/link_loads.cpp: the links of each route that matter, and what crosses them.
#include "memory/link_loads.h"

#include <algorithm>
#include <limits>

#include "device/fair_share.h"

namespace quadriga {

namespace {

/// How many routes between the host and a device cross each link, at least 1.
std::vector<double> host_routes(const Machine& machine) {
  std::vector<double> counts(machine.links.size(), 0);
  for (SpaceId device = 1; device < static_cast<SpaceId>(machine.spaces()); ++device)
    for (const Route* const route :
         {machine.route(host_space, device), machine.route(device, host_space)})
      if (route)
        for (const int link : route->links) counts[static_cast<std::size_t>(link)] += 1;
  for (double& count : counts) count = std::max(count, 1.0);
  return counts;
}

}  // namespace

LinkLoads::LinkLoads(const Machine& machine)
    : spaces_(static_cast<std::size_t>(machine.spaces())),
      pairs_(spaces_ * spaces_),
      users_(machine.links.size()) {
  const FairShare share(machine);
  const std::vector<double> users = host_routes(machine);
  for (std::size_t i = 0; i < machine.routes.size(); ++i) {
    const Route& route = machine.routes[i];
    Pair& found = pair(route.from, route.to);
    if (!found.crossings.empty()) continue;  // Machine::route() takes the first, too
    for (const int link : route.links) found.latency += machine.links[link].latency_seconds;
    found.crowded_seconds_a_byte = 0;
    for (const auto [link, crossings] : share.limiting_links(static_cast<int>(i))) {
      const double seconds_a_byte = 1 / machine.links[link].bytes_per_second;
      found.crossings.push_back({static_cast<std::uint32_t>(link),
                                 static_cast<std::uint32_t>(crossings), seconds_a_byte});
      found.crowded_seconds_a_byte =
          std::max(found.crowded_seconds_a_byte,
                   crossings * users[static_cast<std::size_t>(link)] * seconds_a_byte);
    }
  }
}

void LinkLoads::add(SpaceId from, SpaceId to, std::size_t bytes) {
  Pair& own = pair(from, to);
  if (own.bytes == 0 && bytes > 0)
    for (const Crossing& crossing : own.crossings)
      users_[crossing.link].push_back({number(from, to), crossing.times});
  own.bytes += bytes;
}

void LinkLoads::remove(SpaceId from, SpaceId to, std::size_t bytes) {
  Pair& own = pair(from, to);
  own.bytes -= bytes;
  if (own.bytes > 0 || bytes == 0) return;
  for (const Crossing& crossing : own.crossings)
    std::erase_if(users_[crossing.link],
                  [&](const User& user) { return user.pair == number(from, to); });
}

double LinkLoads::seconds(SpaceId from, SpaceId to, std::size_t bytes) const noexcept {
  const Pair& own = pair(from, to);
  if (own.crossings.empty()) return std::numeric_limits<double>::infinity();
  const std::size_t own_bytes = own.bytes + bytes;
  double most = 0;
  for (const Crossing& crossing : own.crossings) {
    std::size_t behind = own_bytes * crossing.times;
    for (const User& user : users_[crossing.link])
      if (user.pair != number(from, to))
        behind += std::min(pairs_[user.pair].bytes, own_bytes) * user.times;
    most = std::max(most, static_cast<double>(behind) * crossing.seconds_a_byte);
  }
  return own.latency + most;
}

}  // namespace quadriga
