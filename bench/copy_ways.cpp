// SPDX-License-Identifier: BSD-3-Clause
// bench/copy_ways.cpp: for each kind of copy the flows between a machine's memories.
#include "copy_ways.h"

#include <fmt/format.h>

namespace quadriga::bench {
namespace {

// Takes the devices with memory of their own, one kind after the other.
class Ways {
 public:
  Ways(const Machine& machine, CopyBuffers& buffers, bool has_plain)
      : machine_(machine), buffers_(buffers), has_plain_(has_plain) {
    for (const Device& device : machine.devices)
      if (device.space != host_space) devices_.push_back(&device);
  }

  std::vector<Way> with_host(std::string_view kind) {
    const bool pinned = !kind.starts_with("pageable-");
    const std::string_view way = kind.substr(kind.rfind('-') + 1);
    std::vector<Way> ways;
    for (const Device* const device : devices_) {
      const bool out = way == "d2h";
      Way& added = ways.emplace_back();
      added = {std::string(kind), out ? device->name : "host", out ? "host" : device->name};
      if (way != "d2h") added.flows.push_back(in(*device, pinned));
      if (way != "h2d") added.flows.push_back(this->out(*device, pinned));
    }
    return ways;
  }

  std::vector<Way> within() {
    if (!has_plain_) return absent("same", "copies within a device are made by CUDA alone");
    std::vector<Way> ways;
    for (const Device* const device : devices_) {
      ways.push_back({"same", device->name, device->name, Maker::plain});
      ways.back().flows.push_back(buffers_.flow_within(device->space));
    }
    return ways;
  }

  std::vector<Way> peers(std::string_view kind) {
    if (devices_.size() < 2) return absent(kind, "there is one device");
    if (kind == "peer-off" && !has_plain_)
      return absent(kind, "CUDA devices alone can lose sight of each other");
    std::vector<Way> ways;
    for (const Device* const from : devices_) {
      for (const Device* const to : devices_)
        if (from != to && (kind != "peer-both" || from->space < to->space))
          ways.push_back(peer(kind, *from, *to));
    }
    return ways;
  }

  std::vector<Way> all(std::string_view kind) {
    if (devices_.size() < 2) return absent(kind, "there is one device");
    Way way{std::string(kind), "all", "all"};
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const Device& device = *devices_[i];
      if (kind == "all-peer") {
        const Device& next = *devices_[(i + 1) % devices_.size()];
        if (!machine_.route(device.space, next.space)) return absent(kind, no_way(device, next));
        way.flows.push_back(buffers_.flow(device.space, next.space));
        continue;
      }
      if (kind != "all-d2h") way.flows.push_back(in(device, true));
      if (kind != "all-h2d") way.flows.push_back(out(device, true));
    }
    return {way};
  }

 private:
  Flow in(const Device& device, bool pinned) {
    return buffers_.flow(host_space, device.space, pinned);
  }
  Flow out(const Device& device, bool pinned) {
    return buffers_.flow(device.space, host_space, pinned);
  }
  Way peer(std::string_view kind, const Device& from, const Device& to) {
    Way way{std::string(kind), from.name, to.name};
    if (kind == "peer-off") way.maker = Maker::plain_peers_off;
    if (!machine_.route(from.space, to.space)) {
      way.left_out = no_way(from, to);
      return way;
    }
    way.flows.push_back(buffers_.flow(from.space, to.space));
    if (kind == "peer-both") way.flows.push_back(buffers_.flow(to.space, from.space));
    return way;
  }
  static std::vector<Way> absent(std::string_view kind, std::string why) {
    return {Way{std::string(kind), "", "", Maker::engine, {}, std::move(why)}};
  }
  static std::string no_way(const Device& from, const Device& to) {
    return fmt::format("no copies lead from {} to {}", from.name, to.name);
  }

  const Machine& machine_;
  CopyBuffers& buffers_;
  const bool has_plain_;
  std::vector<const Device*> devices_;
};

}  // namespace

std::vector<Way> ways_of(std::string_view kind, const Machine& machine, CopyBuffers& buffers,
                         bool has_plain) {
  Ways ways(machine, buffers, has_plain);
  if (kind == "same") return ways.within();
  if (kind.starts_with("peer")) return ways.peers(kind);
  if (kind.starts_with("all-")) return ways.all(kind);
  return ways.with_host(kind);
}

}  // namespace quadriga::bench
