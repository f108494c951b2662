// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/load.cpp: kernels, directions and links as resources.
#include "pipeline/load.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace quadriga {

StreamLoad::StreamLoad(const Machine& machine, std::vector<DeviceId> devices)
    : machine_(machine),
      devices_(std::move(devices)),
      smallest_out_(std::numeric_limits<double>::infinity()),
      kernel_seconds_(devices_.size(), 0.0),
      smallest_kernel_(devices_.size(), std::numeric_limits<double>::infinity()) {}

void StreamLoad::add(const ChunkLoad& chunk, std::size_t count) {
  const auto times = static_cast<double>(count);
  if (chunks_ == 0) first_ = chunk;
  are_equal_ &= chunk.costs_known && chunk == first_;
  chunks_ += count;
  bytes_in_ += times * chunk.bytes_in;
  bytes_out_ += times * chunk.bytes_out;
  smallest_in_.insert(std::ranges::upper_bound(smallest_in_, chunk.bytes_in),
                      std::min(count, devices_.size()), chunk.bytes_in);
  if (smallest_in_.size() > devices_.size()) smallest_in_.resize(devices_.size());
  smallest_out_ = std::min(smallest_out_, chunk.bytes_out);
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    kernel_seconds_[d] += times * chunk.kernel_seconds[d];
    smallest_kernel_[d] = std::min(smallest_kernel_[d], chunk.kernel_seconds[d]);
  }
}

double StreamLoad::copy_seconds(SpaceId from, SpaceId to, double bytes) const {
  return from == to || bytes == 0 ? 0 : machine_.copy_seconds(from, to, bytes);
}

/// When each device's first kernel can begin: the i-th that a link feeds waits for the i smallest
/// heads. The fastest device is fed first.
std::vector<double> StreamLoad::head_seconds() const {
  std::vector<std::size_t> order(devices_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t d) { return kernel_seconds_[d]; });
  std::vector<double> heads(devices_.size(), 0.0);
  std::vector<std::size_t> fed(machine_.links.size(), 0);
  for (const std::size_t d : order) {
    const SpaceId space = machine_.devices[devices_[d]].space;
    heads[d] = copy_seconds(host_space, space, smallest_in_.empty() ? 0 : smallest_in_.front());
    const Route* const route = space == host_space ? nullptr : machine_.route(host_space, space);
    if (!route) continue;
    for (const int link : route->links) {
      const auto l = static_cast<std::size_t>(link);
      const std::size_t count = std::min(++fed[l], smallest_in_.size());
      const double bytes = std::accumulate(
          smallest_in_.begin(), smallest_in_.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
      heads[d] = std::max(heads[d], bytes / machine_.links[l].bytes_per_second);
    }
  }
  return heads;
}

std::vector<StreamResource> StreamLoad::resources() const {
  std::vector<StreamResource> found;
  if (chunks_ == 0) return found;
  const std::vector<double> heads = head_seconds();
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Device& device = machine_.devices[devices_[d]];
    StreamResource kernels{"kernels of " + device.name, std::vector<double>(devices_.size(), 0.0)};
    const int at_once = device.space == host_space ? std::max(1, device.cores) : 1;
    kernels.seconds[d] = kernel_seconds_[d] / at_once;
    kernels.idle = heads[d] + copy_seconds(device.space, host_space, smallest_out_);
    found.push_back(std::move(kernels));
  }
  add_copies(found, heads);
  add_links(found);
  return found;
}

void StreamLoad::add_copies(std::vector<StreamResource>& found,
                            const std::vector<double>& heads) const {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Device& device = machine_.devices[devices_[d]];
    if (device.space == host_space) continue;
    const double in = copy_seconds(host_space, device.space, bytes_in_);
    const double out = copy_seconds(device.space, host_space, bytes_out_);
    const double tail = copy_seconds(device.space, host_space, smallest_out_);
    const auto resource = [&](const std::string& what, double seconds, double idle) {
      StreamResource made{what + device.name, std::vector<double>(devices_.size(), 0.0), 0, idle};
      made.seconds[d] = seconds;
      found.push_back(std::move(made));
    };
    resource("copies to ", in, smallest_kernel_[d] + tail);
    resource("copies from ", out, heads[d] + smallest_kernel_[d]);
    if (device.copy_engines == 1) resource("copies of ", in + out, 0);
  }
}

/// Bytes over a link, each time that the route names it.
double StreamLoad::total_on(const Route* route, std::size_t link, double bytes) const {
  if (!route) return 0;
  const auto times = std::ranges::count(route->links, static_cast<int>(link));
  return static_cast<double>(times) * bytes / machine_.links[link].bytes_per_second;
}

void StreamLoad::add_links(std::vector<StreamResource>& found) const {
  for (std::size_t l = 0; l < machine_.links.size(); ++l) {
    StreamResource link{"link " + machine_.links[l].name,
                        std::vector<double>(devices_.size(), 0.0)};
    bool is_used = false;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const SpaceId space = machine_.devices[devices_[d]].space;
      if (space == host_space) continue;
      link.seconds[d] = total_on(machine_.route(host_space, space), l, bytes_in_) +
                        total_on(machine_.route(space, host_space), l, bytes_out_);
      is_used |= link.seconds[d] > 0;
    }
    if (is_used) found.push_back(std::move(link));
  }
}

}  // namespace quadriga
