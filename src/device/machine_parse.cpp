// SPDX-License-Identifier: BSD-3-Clause
// src/device/machine_parse.cpp: machines from device lists, as "emulated:4,memory=64MiB;cpu:2".
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/config.h"
#include "base/log.h"
#include "base/units.h"
#include "device/description.h"
#include "device/kinds.h"

namespace quadriga {
namespace {

constexpr double default_bytes_per_second = 6e9;
constexpr std::size_t default_memory_bytes = std::size_t{1} << 30;
constexpr long long most_devices = 1000;
constexpr double most_latency_seconds = 1e6;  // as in descriptions
constexpr std::string_view accepted =
    "'cpu[:CORES]', {}'emulated:N[,memory=64MiB][,h2d=6GB/s][,d2h=6GB/s]"
    "[,peer=off|20GB/s][,latency=10us][,streams=2]' or 'machine=FILE[:N][,cpu=on][,the same "
    "keys]', "
    "joined by ';', or 'auto'";

std::vector<const KindOfDevice*> discovered_kinds() {
  std::vector<const KindOfDevice*> kinds;
  for (const DeviceKind each : all_kinds())
    if (const KindOfDevice* const kind = find_kind(each); kind->discover) kinds.push_back(kind);
  return kinds;
}

[[noreturn]] void refuse(std::string_view item, std::string_view why) {
  std::string discovered;
  for (const KindOfDevice* const kind : discovered_kinds())
    discovered += fmt::format("'{}[:N]', ", kind->name);
  fail(Errc::invalid_argument, fmt::format("device list: '{}': {}; accepted are {}", item, why,
                                           fmt::format(accepted, discovered)));
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// An item of the list, taken apart: "emulated:4,memory=64MiB".
struct Item {
  std::string_view text;
  std::string_view head;     // "emulated", "machine=FILE".
  std::optional<int> count;  // What follows the colon.
  std::optional<std::size_t> memory_bytes;
  std::optional<double> h2d;  // Bytes per second, as d2h and peer.
  std::optional<double> d2h;
  std::optional<double> peer;  // 0: off.
  std::optional<double> latency_seconds;
  std::optional<int> streams;
  bool cpu = false;
};

void read_key(Item& item, std::string_view key, std::string_view value) {
  if (key == "memory") {
    item.memory_bytes = parse_bytes(value);
    if (*item.memory_bytes == 0) refuse(item.text, "memory must be above zero");
  } else if (key == "h2d") {
    item.h2d = parse_bytes_per_second(value);
  } else if (key == "d2h") {
    item.d2h = parse_bytes_per_second(value);
  } else if (key == "peer") {
    item.peer = value == "off" ? 0 : parse_bytes_per_second(value);
  } else if (key == "latency") {
    item.latency_seconds = parse_seconds(value);
    if (*item.latency_seconds > most_latency_seconds)
      refuse(item.text, fmt::format("latency {} is more than {:g} s", value, most_latency_seconds));
  } else if (key == "streams") {
    item.streams = static_cast<int>(parse_integer(value, 1, most_devices));
  } else if (key == "cpu" && (value == "on" || value == "off")) {
    item.cpu = value == "on";
  } else {
    refuse(item.text, fmt::format("unknown key or value '{}={}'", key, value));
  }
}

// A colon belongs to the file's name unless a number alone follows it.
void read_head(Item& item, std::string_view text) {
  item.head = text;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return;
  const std::string_view number = text.substr(colon + 1);
  const bool is_number =
      !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  if (!is_number && text.starts_with("machine=")) return;
  if (!is_number) refuse(item.text, fmt::format("'{}' is not a number of devices", number));
  item.count = static_cast<int>(parse_integer(number, 1, most_devices));
  item.head = text.substr(0, colon);
}

void read_parts(Item& item) {
  const std::vector<std::string_view> parts = split(item.text, ',');
  read_head(item, parts.front());
  std::vector<std::string_view> keys;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    if (equals == std::string_view::npos) {
      refuse(item.text, fmt::format("'{}' is not of the form key=value", parts[i]));
    }
    const std::string_view key = trim(parts[i].substr(0, equals));
    if (std::ranges::find(keys, key) != keys.end())
      refuse(item.text, fmt::format("'{}' is given twice", key));
    keys.push_back(key);
    read_key(item, key, trim(parts[i].substr(equals + 1)));
  }
}

Item read_item(std::string_view text) {
  Item item;
  item.text = text;
  try {
    read_parts(item);
  } catch (const Error& error) {
    // What reads numbers doesn't know which item they are of.
    if (std::string_view(error.what()).starts_with("device list:")) throw;
    refuse(text, error.what());
  }
  return item;
}

int add_link(Machine& machine, std::string name, double bytes_per_second, double latency_seconds) {
  machine.links.push_back({std::move(name), bytes_per_second, latency_seconds});
  return static_cast<int>(machine.links.size()) - 1;
}

// Replaces the route by one over a link of its own; keeps what short runs reach, and its latency
// unless another is stated.
void set_route(Machine& machine, SpaceId from, SpaceId to, const std::string& link,
               double bytes_per_second, std::optional<double> latency_seconds) {
  double latency = 0;
  std::map<double, double> runs;
  if (const Route* old = machine.route(from, to)) {
    for (const int crossed : old->links) {
      latency += machine.links[crossed].latency_seconds;
      if (runs.empty()) runs = machine.links[crossed].runs;
    }
  }
  std::erase_if(machine.routes,
                [&](const Route& route) { return route.from == from && route.to == to; });
  const int index = add_link(machine, link, bytes_per_second, latency_seconds.value_or(latency));
  machine.links.back().runs = std::move(runs);
  machine.routes.push_back({from, to, {index}});
}

bool between_devices(const Route& route) {
  return route.from != host_space && route.to != host_space;
}

// Each device gets one link out and one in, which all its peers share.
void set_peers(Machine& machine, double bytes_per_second, double latency_seconds) {
  std::erase_if(machine.routes, between_devices);
  if (bytes_per_second == 0) return;
  std::vector<SpaceId> spaces;
  std::vector<std::array<int, 2>> out_in;
  for (const Device& device : machine.devices) {
    if (device.space == host_space || properties_of(device.kind).only_stores) continue;
    spaces.push_back(device.space);
    const int out = add_link(machine, device.name + " peer out", bytes_per_second, latency_seconds);
    out_in.push_back({out, add_link(machine, device.name + " peer in", bytes_per_second, 0)});
  }
  for (std::size_t from = 0; from < spaces.size(); ++from) {
    for (std::size_t to = 0; to < spaces.size(); ++to) {
      if (from == to) continue;
      machine.routes.push_back({spaces[from], spaces[to], {out_in[from][0], out_in[to][1]}});
    }
  }
}

// What the keys of an item say about its accelerators.
void apply_keys(Machine& machine, const Item& item) {
  for (Device& device : machine.devices) {
    if (device.space == host_space || properties_of(device.kind).only_stores) continue;
    if (item.memory_bytes) device.memory_bytes = *item.memory_bytes;
    if (item.streams) device.compute_streams = *item.streams;
    if (item.h2d) {
      set_route(machine, host_space, device.space, device.name + " h2d", *item.h2d,
                item.latency_seconds);
    }
    if (item.d2h) {
      set_route(machine, device.space, host_space, device.name + " d2h", *item.d2h,
                item.latency_seconds);
    }
  }
  if (item.peer) set_peers(machine, *item.peer, item.latency_seconds.value_or(0));
  const bool made_links = item.h2d || item.d2h || item.peer.value_or(0) > 0;
  if (item.latency_seconds && !made_links) {
    refuse(item.text, "latency needs h2d, d2h or peer, whose links it belongs to");
  }
}

void drop_unused_links(Machine& machine) {
  std::vector<int> renumbered(machine.links.size(), -1);
  std::vector<Link> links;
  for (Route& route : machine.routes) {
    for (int& link : route.links) {
      if (renumbered[link] < 0) {
        renumbered[link] = static_cast<int>(links.size());
        links.push_back(machine.links[link]);
      }
      link = renumbered[link];
    }
  }
  machine.links = std::move(links);
}

// What the setting `machine` describes; nothing if there is none.
std::optional<Machine> configured_description() {
  const Setting setting = Config::global().get("machine");
  if (setting.value.empty()) return std::nullopt;
  return Machine::from_file(setting.value);
}

// A setting that changes nothing is a mistake, or left over.
void tell_unused_description(const Machine& machine) {
  const std::optional<Machine> description = configured_description();
  if (!description) return;
  for (const Device& device : description->devices)
    if (std::ranges::find(machine.devices, device.name, &Device::name) != machine.devices.end())
      return;
  const Setting setting = Config::global().get("machine");
  log(LogLevel::warning,
      fmt::format("setting machine: '{}' describes none of the devices and isn't used",
                  setting.value));
}

// A description of what CUDA finds says nothing of emulated devices.
void use_description_of_emulated(Machine& machine) {
  const std::optional<Machine> description = configured_description();
  if (!description) return;
  const std::string& name = machine.devices.front().name;
  const auto& devices = description->devices;
  if (std::ranges::find(devices, name, &Device::name) != devices.end())
    use_description(machine, *description);
}

Machine emulated_machine(const Item& item, int first_number) {
  Machine machine;
  machine.name = "emulated";
  const int count = item.count.value_or(1);
  for (int i = 0; i < count; ++i) {
    Device device;
    device.name = fmt::format("emulated{}", first_number + i);
    device.kind = DeviceKind::emulated;
    device.space = static_cast<SpaceId>(1 + i);
    device.memory_bytes = default_memory_bytes;
    device.rates = "emulated";
    machine.devices.push_back(std::move(device));
  }
  Item usual;
  usual.h2d = usual.d2h = default_bytes_per_second;
  usual.latency_seconds = item.latency_seconds;
  apply_keys(machine, usual);
  use_description_of_emulated(machine);
  Item stated = item;
  stated.latency_seconds.reset();
  if (item.h2d || item.d2h || item.peer.value_or(0) > 0)
    stated.latency_seconds = item.latency_seconds;
  apply_keys(machine, stated);
  drop_unused_links(machine);
  return machine;
}

// Keeps the devices, renumbers their spaces, and drops the routes of the others.
void keep_devices(Machine& machine, const std::vector<Device>& kept) {
  std::vector<SpaceId> renumbered(machine.spaces(), no_space);
  renumbered[host_space] = host_space;
  machine.devices = kept;
  SpaceId next = 1;
  for (Device& device : machine.devices) {
    if (device.space == host_space) continue;
    renumbered[device.space] = next;
    device.space = next++;
  }
  for (Route& route : machine.routes) {
    route.from = renumbered[route.from];
    route.to = renumbered[route.to];
  }
  std::erase_if(machine.routes,
                [](const Route& route) { return route.from == no_space || route.to == no_space; });
}

Machine described_machine(const Item& item) {
  const std::string path(trim(item.head.substr(std::string_view("machine=").size())));
  Machine machine = Machine::from_file(path);
  std::vector<Device> kept;
  int accelerators = 0;
  for (Device device : machine.devices) {
    const bool is_cpu = device.kind == DeviceKind::cpu;
    if (properties_of(device.kind).only_stores) {
      kept.push_back(std::move(device));
      continue;
    }
    if (is_cpu ? !item.cpu : accelerators >= item.count.value_or(static_cast<int>(most_devices))) {
      continue;
    }
    // A description's clock and memory are emulated whatever it was measured on.
    if (!is_cpu) device.kind = DeviceKind::emulated;
    accelerators += is_cpu ? 0 : 1;
    kept.push_back(std::move(device));
  }
  if (item.count && accelerators < *item.count) {
    refuse(item.text, fmt::format("'{}' describes {} accelerators", path, accelerators));
  }
  const auto only_stores = [](const Device& each) { return properties_of(each.kind).only_stores; };
  if (std::ranges::all_of(kept, only_stores))
    refuse(item.text, "no device is left; cpu=on takes its cores");
  keep_devices(machine, kept);
  apply_keys(machine, item);
  drop_unused_links(machine);
  return machine;
}

Machine cpu_machine(const Item& item) {
  if (item.memory_bytes || item.h2d || item.d2h || item.peer || item.latency_seconds ||
      item.streams) {
    refuse(item.text, "cpu takes a number of cores and no keys");
  }
  Machine machine = Machine::host();
  if (item.count) {
    machine.devices.front().cores = *item.count;
    machine.devices.front().compute_streams = *item.count;
  }
  return machine;
}

Machine discovered_machine(const Item& item, const KindOfDevice& kind) {
  Machine machine = kind.discover();
  if (machine.devices.empty()) {
    fail(Errc::unavailable, fmt::format("device list: '{}': {}", item.text, kind.absence()));
  }
  if (item.count && machine.devices.size() < static_cast<std::size_t>(*item.count)) {
    refuse(item.text, fmt::format("this machine has {} devices of kind {}", machine.devices.size(),
                                  kind.name));
  }
  if (item.count) {
    keep_devices(machine, std::vector<Device>(machine.devices.begin(),
                                              machine.devices.begin() + *item.count));
  }
  if (const std::optional<Machine> description = configured_description())
    use_description(machine, *description);
  apply_keys(machine, item);
  drop_unused_links(machine);
  return machine;
}

int count_emulated(const Machine& machine) {
  return static_cast<int>(std::ranges::count_if(
      machine.devices, [](const Device& device) { return device.name.starts_with("emulated"); }));
}

Machine machine_of(const Item& item, const Machine& before) {
  if (item.head == "cpu") return cpu_machine(item);
  if (item.head == "emulated") return emulated_machine(item, count_emulated(before));
  if (item.head.starts_with("machine=")) return described_machine(item);
  if (const KindOfDevice* const kind = find_kind(item.head); kind && kind->discover)
    return discovered_machine(item, *kind);
  refuse(item.text, fmt::format("unknown device '{}'", item.head));
}

void append_devices(Machine& machine, const Machine& part, std::string_view item) {
  const auto first_space = static_cast<SpaceId>(machine.spaces() - 1);
  for (Device device : part.devices) {
    if (device.space != host_space) device.space = static_cast<SpaceId>(device.space + first_space);
    for (const Device& other : machine.devices) {
      if (other.name == device.name) {
        refuse(item, fmt::format("the device '{}' is in the list already", device.name));
      }
    }
    machine.devices.push_back(std::move(device));
  }
}

void append_kernels(Machine& machine, const Machine& part, std::string_view item) {
  for (const auto& [kernel, columns] : part.kernels) {
    for (const auto& [column, times] : columns) {
      const auto [entry, added] = machine.kernels[kernel].emplace(column, times);
      if (!added && entry->second != times) {
        refuse(item, fmt::format("its times of kernel '{}', column '{}', differ from those of an "
                                 "earlier item",
                                 kernel, column));
      }
    }
  }
}

void append_nodes(Machine& machine, const Machine& part, std::string_view item) {
  for (const Node& node : part.nodes) {
    const auto same = std::ranges::find(machine.nodes, node.index, &Node::index);
    if (same == machine.nodes.end())
      machine.nodes.push_back(node);
    else if (*same != node)
      refuse(item,
             fmt::format("its NUMA node {} differs from that of an earlier item", node.index));
  }
}

void append(Machine& machine, const Machine& part, std::string_view item) {
  const auto first_space = static_cast<SpaceId>(machine.spaces() - 1);
  const auto first_link = static_cast<int>(machine.links.size());
  const auto moved = [&](SpaceId space) {
    return space == host_space ? host_space : static_cast<SpaceId>(space + first_space);
  };
  append_devices(machine, part, item);
  append_kernels(machine, part, item);
  append_nodes(machine, part, item);
  machine.links.insert(machine.links.end(), part.links.begin(), part.links.end());
  for (Route route : part.routes) {
    route.from = moved(route.from);
    route.to = moved(route.to);
    for (int& link : route.links) link += first_link;
    machine.routes.push_back(std::move(route));
  }
  machine.name += (machine.name.empty() ? "" : "+") + part.name;
  machine.launch_seconds = std::max(machine.launch_seconds, part.launch_seconds);
  if (part.message.latency_seconds > machine.message.latency_seconds)
    machine.message = part.message;
  if (part.planning.task_seconds > machine.planning.task_seconds) machine.planning = part.planning;
}

/// All devices that are found; where none can be used, the cores.
Machine automatic() {
  Machine machine;
  for (const KindOfDevice* const kind : discovered_kinds()) {
    if (!kind->absence().empty()) continue;
    try {
      append(machine, machine_of(read_item(kind->name), machine), kind->name);
    } catch (const Error& error) {
      // As a description of another machine: what the user set is not to be passed over.
      if (error.code() == Errc::invalid_argument) throw;
      log(LogLevel::warning,
          fmt::format("devices of kind {} are left out: {}", kind->name, error.what()));
    }
  }
  return machine.devices.empty() ? Machine::host() : machine;
}

}  // namespace

Machine Machine::parse(std::string_view devices) {
  Machine machine;
  if (devices == "auto") {
    machine = automatic();
    tell_unused_description(machine);
    return machine;
  }
  for (const std::string_view text : split(devices, ';')) {
    if (text.empty()) refuse(devices, "an item is empty");
    append(machine, machine_of(read_item(text), machine), text);
  }
  tell_unused_description(machine);
  return machine;
}

}  // namespace quadriga
