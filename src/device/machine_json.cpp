// SPDX-License-Identifier: BSD-3-Clause
// src/device/machine_json.cpp: descriptions of machines in JSON, read and written.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "device/kinds.h"
#include "device/topology.h"

namespace quadriga {
namespace {

using Json = nlohmann::ordered_json;

constexpr double most_bytes = 1e18;  // Far above any memory, far below overflow.
constexpr unsigned most_pitch_alignment = 4096;

[[noreturn]] void refuse(const std::string& path, std::string_view expected, const Json& found) {
  std::string text = found.dump();
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  fail(Errc::invalid_argument,
       fmt::format("machine description: {}: expected {}, found {}", path, expected, text));
}

[[noreturn]] void missing(const std::string& path) {
  fail(Errc::invalid_argument, fmt::format("machine description: {} is missing", path));
}

const Json& member(const Json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end()) missing(path + "." + key);
  return *found;
}

void expect_object(const Json& value, const std::string& path) {
  if (!value.is_object()) refuse(path, "an object", value);
}

void expect_array(const Json& value, const std::string& path) {
  if (!value.is_array()) refuse(path, "a list", value);
}

std::string read_string(const Json& value, const std::string& path) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    refuse(path, "a name", value);
  }
  return value.get<std::string>();
}

// A number in [least, most].
double read_number(const Json& value, const std::string& path, double least, double most) {
  const std::string expected = fmt::format("a number from {:g} to {:g}", least, most);
  if (!value.is_number()) refuse(path, expected, value);
  const double number = value.get<double>();
  if (!(number >= least && number <= most)) refuse(path, expected, value);
  return number;
}

std::string read_text(const Json& object, const char* key, const std::string& path) {
  const auto found = object.find(key);
  return found == object.end() ? "" : read_string(*found, path + "." + key);
}

int read_count(const Json& object, const char* key, const std::string& path, int least,
               int absent) {
  const auto found = object.find(key);
  if (found == object.end()) return absent;
  const double number = read_number(*found, path + "." + key, least, 100000);
  if (number != std::floor(number)) refuse(path + "." + key, "a whole number", *found);
  return static_cast<int>(number);
}

// A number as key.
double read_key(const std::string& text, const std::string& path, std::string_view expected) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > 0 && number < 1e12)) {
    refuse(path, expected, text);
  }
  return number;
}

// Shares of a rate by a length, up to the length from which on all of it is reached.
void read_shares(const Json& json, const std::string& path, std::string_view expected,
                 std::map<double, double>& shares) {
  expect_object(json, path);
  for (const auto& [length, share] : json.items()) {
    const std::string entry = path + "." + length;
    shares[read_key(length, entry, expected)] = read_number(share, entry, 1e-9, 1);
  }
  if (shares.empty() || shares.rbegin()->second != 1)
    refuse(path, "a share of 1, which is the whole rate, for the longest", json);
}

// What a device is and where it is plugged in; all of it may be absent.
void read_place(const Json& json, const std::string& path, Device& device) {
  device.model = read_text(json, "model", path);
  device.pci_address = read_text(json, "pci_address", path);
  device.pcie_generation = read_count(json, "pcie_generation", path, 0, 0);
  device.pcie_lanes = read_count(json, "pcie_lanes", path, 0, 0);
  device.node = read_count(json, "node", path, 0, any_node);
  device.path = read_text(json, "path", path);
}

// Kind, and column of kernel times unless another is stated. A file's "gpu" is an accelerator of
// whatever make: here it is emulated.
void read_kind(const Json& value, const std::string& path, Device& device) {
  const std::string text = read_string(value, path);
  const KindOfDevice* const kind = find_kind(text == "gpu" ? "emulated" : text);
  if (!kind) {
    std::string accepted = "\"gpu\"";
    for (const DeviceKind each : all_kinds()) accepted += fmt::format(", \"{}\"", name(each));
    refuse(path, "one of " + accepted, value);
  }
  device.kind = kind->kind;
  device.rates = text == "gpu" ? text : kind->rates;
}

Device read_device(const Json& json, const std::string& path, SpaceId next_space) {
  expect_object(json, path);
  Device device;
  device.name = read_string(member(json, "name", path), path + ".name");
  read_kind(member(json, "kind", path), path + ".kind", device);
  const bool is_cpu = device.kind == DeviceKind::cpu;
  // A CPU without cores is there for what needs the host.
  device.cores = read_count(json, "cores", path, is_cpu ? 0 : 1, is_cpu ? 1 : 0);
  device.compute_streams =
      read_count(json, "compute_streams", path, 1, is_cpu ? std::max(1, device.cores) : 1);
  device.copy_engines = read_count(json, "copy_engines", path, 0, is_cpu ? 0 : 2);
  device.hardware_queues = read_count(json, "hardware_queues", path, 1, 0);
  if (json.contains("rates"))
    device.rates = json["rates"] == "" ? "" : read_string(json["rates"], path + ".rates");
  read_place(json, path, device);
  if (!is_cpu) {
    device.space = next_space;
    device.memory_bytes = static_cast<std::size_t>(
        read_number(member(json, "memory", path), path + ".memory", 1, most_bytes));
    const auto alignment = static_cast<unsigned>(read_count(json, "pitch_alignment", path, 1, 1));
    if (!std::has_single_bit(alignment) || alignment > most_pitch_alignment)
      refuse(path + ".pitch_alignment",
             fmt::format("a power of two up to {}", most_pitch_alignment), json["pitch_alignment"]);
    device.pitch_alignment = alignment;
    device.granule = read_count(json, "granule", path, 1, device.granule);
    if (json.contains("sums"))
      read_shares(json["sums"], path + ".sums", "the length of a sum, above zero, as key",
                  device.sums);
  }
  return device;
}

void read_devices(const Json& json, Machine& machine) {
  expect_array(json, "devices");
  SpaceId next_space = 1;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string path = fmt::format("devices[{}]", i);
    Device device = read_device(json[i], path, next_space);
    if (device.space != host_space) ++next_space;
    for (const Device& other : machine.devices) {
      if (other.name == device.name) refuse(path + ".name", "a name of its own", json[i]["name"]);
    }
    if (device.name == "host") refuse(path + ".name", "another name than the host's", device.name);
    machine.devices.push_back(std::move(device));
  }
  if (machine.devices.empty()) refuse("devices", "at least one device", json);
}

void read_nodes(const Json& json, Machine& machine) {
  expect_array(json, "nodes");
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string path = fmt::format("nodes[{}]", i);
    expect_object(json[i], path);
    Node node;
    node.index = read_count(json[i], "index", path, 0, static_cast<int>(i));
    if (std::ranges::count(machine.nodes, node.index, &Node::index) > 0)
      refuse(path + ".index", "an index of its own", node.index);
    node.cores = read_count(json[i], "cores", path, 0, 0);
    if (json[i].contains("memory")) {
      node.memory_bytes =
          static_cast<std::size_t>(read_number(json[i]["memory"], path + ".memory", 0, most_bytes));
    }
    const std::string processors = read_text(json[i], "processors", path);
    const auto list = parse_processors(processors);
    if (!list) refuse(path + ".processors", "a list as \"0-3,8\"", processors);
    node.processors = *list;
    machine.nodes.push_back(std::move(node));
  }
}

MessageCost read_message(const Json& json) {
  expect_object(json, "message");
  MessageCost cost;
  cost.latency_seconds =
      read_number(member(json, "latency", "message"), "message.latency", 1e-9, 1);
  if (json.contains("busy"))
    cost.busy_seconds = read_number(json["busy"], "message.busy", 0, cost.latency_seconds);
  return cost;
}

PlanningCost read_planning(const Json& json) {
  expect_object(json, "planning");
  const auto seconds = [&](const char* key) {
    return read_number(member(json, key, "planning"), fmt::format("planning.{}", key), 1e-12, 1);
  };
  return {seconds("engine"), seconds("task"), seconds("listed"), seconds("product")};
}

void read_links(const Json& json, Machine& machine) {
  expect_object(json, "links");
  for (const auto& [name, value] : json.items()) {
    const std::string path = fmt::format("links.{}", name);
    expect_object(value, path);
    Link link;
    link.name = name;
    link.bytes_per_second =
        read_number(member(value, "bandwidth", path), path + ".bandwidth", 1, most_bytes);
    if (value.contains("latency")) {
      link.latency_seconds = read_number(value["latency"], path + ".latency", 0, 1e6);
    }
    if (value.contains("runs"))
      read_shares(value["runs"], path + ".runs", "bytes of a run, above zero, as key", link.runs);
    machine.links.push_back(std::move(link));
  }
}

SpaceId read_space(const Json& value, const std::string& path, const Machine& machine) {
  const std::string name = read_string(value, path);
  if (name == "host") return host_space;
  for (const Device& device : machine.devices) {
    if (device.name == name && device.space != host_space) return device.space;
  }
  refuse(path, "\"host\" or a device with memory of its own", value);
}

int read_link(const Json& value, const std::string& path, const Machine& machine) {
  const std::string name = read_string(value, path);
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    if (machine.links[i].name == name) return static_cast<int>(i);
  }
  refuse(path, "the name of a link", value);
}

// The node that a route is for, and whether that is its turn: what holds for all nodes comes first.
void read_node_of(const Json& json, const std::string& path, const Machine& machine, Route& route) {
  route.node = read_count(json, "node", path, 0, any_node);
  const Route* const before = machine.route(route.from, route.to, route.node);
  if (before != nullptr && before->node == route.node)
    refuse(path, "one route for each pair of spaces", json);
  if (route.node == any_node) return;
  if (std::ranges::count(machine.nodes, route.node, &Node::index) == 0)
    refuse(path + ".node", "the index of a node under \"nodes\"", json["node"]);
  if (route.from != host_space && route.to != host_space)
    refuse(path + ".node", "a node only where one end is the host", json["node"]);
  if (before == nullptr) refuse(path, "the route for all nodes before one for a node", json);
}

void read_routes(const Json& json, Machine& machine) {
  expect_array(json, "routes");
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string path = fmt::format("routes[{}]", i);
    expect_object(json[i], path);
    Route route;
    route.from = read_space(member(json[i], "from", path), path + ".from", machine);
    route.to = read_space(member(json[i], "to", path), path + ".to", machine);
    if (route.from == route.to) refuse(path + ".to", "another space than \"from\"", json[i]["to"]);
    read_node_of(json[i], path, machine, route);
    route.nvlinks = read_count(json[i], "nvlinks", path, 0, 0);
    const Json& links = member(json[i], "links", path);
    expect_array(links, path + ".links");
    if (links.empty()) refuse(path + ".links", "at least one link", links);
    for (std::size_t k = 0; k < links.size(); ++k) {
      route.links.push_back(read_link(links[k], fmt::format("{}.links[{}]", path, k), machine));
    }
    machine.routes.push_back(std::move(route));
  }
}

void read_kernels(const Json& json, Machine& machine) {
  expect_object(json, "kernels");
  for (const auto& [kernel, columns] : json.items()) {
    const std::string path = fmt::format("kernels.{}", kernel);
    expect_object(columns, path);
    for (const auto& [column, times] : columns.items()) {
      const std::string column_path = path + "." + column;
      expect_object(times, column_path);
      auto& table = machine.kernels[kernel][column];
      for (const auto& [order, seconds] : times.items()) {
        const std::string entry = column_path + "." + order;
        const double key = read_key(order, entry, "a tile size above zero as key");
        table[key] = read_number(seconds, entry, 1e-12, 1e9);
      }
    }
  }
}

void write_shares(const std::map<double, double>& shares, const char* key, Json& json) {
  for (const auto& [length, share] : shares) json[key][fmt::format("{}", length)] = share;
}

Json write_device(const Device& device) {
  Json json{{"name", device.name}, {"kind", name(device.kind)}};
  if (device.space != host_space) json["memory"] = device.memory_bytes;
  if (device.cores > 0 || device.kind == DeviceKind::cpu) json["cores"] = device.cores;
  json["compute_streams"] = device.compute_streams;
  json["copy_engines"] = device.copy_engines;
  if (device.hardware_queues > 0) json["hardware_queues"] = device.hardware_queues;
  if (device.granule != Device().granule) json["granule"] = device.granule;
  if (device.pitch_alignment > 1) json["pitch_alignment"] = device.pitch_alignment;
  // None, too, where the kind has some by default.
  if (!device.rates.empty() || !find_kind(name(device.kind))->rates.empty())
    json["rates"] = device.rates;
  if (!device.model.empty()) json["model"] = device.model;
  if (!device.pci_address.empty()) json["pci_address"] = device.pci_address;
  if (device.pcie_generation > 0) json["pcie_generation"] = device.pcie_generation;
  if (device.pcie_lanes > 0) json["pcie_lanes"] = device.pcie_lanes;
  if (device.node != any_node) json["node"] = device.node;
  if (!device.path.empty()) json["path"] = device.path;
  write_shares(device.sums, "sums", json);
  return json;
}

Json write_node(const Node& node) {
  Json json{{"index", node.index}, {"memory", node.memory_bytes}, {"cores", node.cores}};
  if (!node.processors.empty()) json["processors"] = format_processors(node.processors);
  return json;
}

Json write_link(const Link& link) {
  Json json{{"bandwidth", link.bytes_per_second}, {"latency", link.latency_seconds}};
  write_shares(link.runs, "runs", json);
  return json;
}

std::string space_name(const Machine& machine, SpaceId space) {
  for (const Device& device : machine.devices) {
    if (space != host_space && device.space == space) return device.name;
  }
  return "host";
}

Json write_routes(const Machine& machine) {
  Json json = Json::array();
  for (const Route& route : machine.routes) {
    Json links = Json::array();
    for (const int link : route.links) links.push_back(machine.links[link].name);
    json.push_back({{"from", space_name(machine, route.from)},
                    {"to", space_name(machine, route.to)},
                    {"links", links}});
    if (route.nvlinks > 0) json.back()["nvlinks"] = route.nvlinks;
    if (route.node != any_node) json.back()["node"] = route.node;
  }
  return json;
}

Json write_kernels(const Machine& machine) {
  Json json = Json::object();
  for (const auto& [kernel, columns] : machine.kernels) {
    for (const auto& [column, times] : columns) {
      Json& table = json[kernel][column] = Json::object();
      for (const auto& [order, seconds] : times) table[fmt::format("{}", order)] = seconds;
    }
  }
  return json;
}

}  // namespace

Machine Machine::from_file(const std::string& path) {
  require_regular(path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || !text) {
    fail(Errc::io, fmt::format("can't read machine description '{}': {}", path,
                               errno != 0 ? std::strerror(errno) : "it is empty"));
  }
  try {
    return from_json(text.str());
  } catch (const Error& error) {
    fail(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

Machine Machine::from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    fail(Errc::invalid_argument, "machine description: the text is not valid JSON");
  }
  if (!json.is_object()) refuse("the description", "an object", json);
  Machine machine;
  machine.name = read_string(member(json, "name", "machine"), "name");
  read_devices(member(json, "devices", "machine"), machine);
  if (json.contains("nodes")) read_nodes(json["nodes"], machine);
  if (json.contains("links")) read_links(json["links"], machine);
  if (json.contains("routes")) read_routes(json["routes"], machine);
  if (json.contains("kernels")) read_kernels(json["kernels"], machine);
  if (json.contains("launch")) machine.launch_seconds = read_number(json["launch"], "launch", 0, 1);
  if (json.contains("message")) machine.message = read_message(json["message"]);
  if (json.contains("planning")) machine.planning = read_planning(json["planning"]);
  return machine;
}

std::string Machine::to_json() const {
  Json json{{"name", name}, {"devices", Json::array()}};
  for (const Device& device : devices) json["devices"].push_back(write_device(device));
  for (const Node& node : nodes) json["nodes"].push_back(write_node(node));
  json["links"] = Json::object();
  for (const Link& link : links) json["links"][link.name] = write_link(link);
  json["routes"] = write_routes(*this);
  json["kernels"] = write_kernels(*this);
  json["launch"] = launch_seconds;
  if (message.latency_seconds > 0)
    json["message"] = {{"latency", message.latency_seconds}, {"busy", message.busy_seconds}};
  if (planning.task_seconds > 0)
    json["planning"] = {{"engine", planning.engine_seconds},
                        {"task", planning.task_seconds},
                        {"listed", planning.listed_seconds},
                        {"product", planning.product_seconds}};
  // Paths may hold bytes that are no text.
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace quadriga
