// SPDX-License-Identifier: BSD-3-Clause
// src/device/topology.cpp: the host's NUMA nodes and PCIe slots by the kernel's files.
#include "device/topology.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <thread>

namespace quadriga {
namespace {

namespace fs = std::filesystem;

constexpr int most_processors = 1 << 20;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<long long> number_at_start(std::string_view text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// "3" or "0-3"; false if it is neither.
bool add_range(std::string_view text, std::vector<int>& processors) {
  const std::size_t dash = text.find('-');
  const auto read = [](std::string_view word) -> int {
    int value = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size() ? value : -1;
  };
  const int first = read(text.substr(0, dash));
  const int last = dash == std::string_view::npos ? first : read(text.substr(dash + 1));
  if (first < 0 || last < first || last >= most_processors) return false;
  for (int i = first; i <= last; ++i) processors.push_back(i);
  return true;
}

// Processors that share a core name the same siblings.
int count_cores(const fs::path& sys, const std::vector<int>& processors) {
  std::set<std::string> cores;
  for (const int processor : processors) {
    const fs::path path =
        sys / fmt::format("devices/system/cpu/cpu{}/topology/thread_siblings_list", processor);
    const std::string siblings = first_line(path);
    cores.insert(siblings.empty() ? std::to_string(processor) : siblings);
  }
  return static_cast<int>(cores.size());
}

// "Node 0 MemTotal:       16303428 kB"
std::size_t node_memory(const fs::path& folder) {
  std::ifstream file(folder / "meminfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find("MemTotal:");
    if (at == std::string::npos) continue;
    const std::size_t digits = line.find_first_of("0123456789", at);
    if (digits == std::string::npos) return 0;
    return static_cast<std::size_t>(number_at_start(line.substr(digits)).value_or(0)) << 10;
  }
  return 0;
}

std::vector<int> processors_in(const fs::path& path) {
  return parse_processors(first_line(path)).value_or(std::vector<int>{});
}

Node whole_host(const fs::path& sys) {
  Node node;
  node.memory_bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  node.processors = processors_in(sys / "devices/system/cpu/online");
  // Where the kernel's files aren't there, as in some containers, the system call knows how many.
  if (node.processors.empty()) {
    node.processors.resize(std::max(1U, std::thread::hardware_concurrency()));
    std::iota(node.processors.begin(), node.processors.end(), 0);
  }
  node.cores = count_cores(sys, node.processors);
  return node;
}

// "32.0 GT/s PCIe": each generation has a rate of its own.
int generation_of(std::string_view speed) {
  constexpr std::array<long long, 7> transfers{2, 5, 8, 16, 32, 64, 128};  // 2.5 is the first's.
  const auto found = std::ranges::find(transfers, number_at_start(speed).value_or(0));
  return found == transfers.end() ? 0 : static_cast<int>(found - transfers.begin()) + 1;
}

}  // namespace

std::optional<std::vector<int>> parse_processors(std::string_view list) {
  std::vector<int> processors;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (!add_range(list.substr(0, comma), processors)) return std::nullopt;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return processors;
}

std::string format_processors(const std::vector<int>& processors) {
  std::string text;
  for (std::size_t i = 0; i < processors.size();) {
    std::size_t end = i + 1;
    while (end < processors.size() && processors[end] == processors[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", processors[i]);
    if (end > i + 1) text += fmt::format("-{}", processors[end - 1]);
    i = end;
  }
  return text;
}

std::vector<Node> nodes_by_files(const std::string& sys) {
  std::vector<Node> nodes;
  const fs::path root(sys);
  for (const int index : processors_in(root / "devices/system/node/online")) {
    const fs::path folder = root / fmt::format("devices/system/node/node{}", index);
    Node node;
    node.index = index;
    node.memory_bytes = node_memory(folder);
    node.processors = processors_in(folder / "cpulist");
    node.cores = count_cores(root, node.processors);
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) nodes.push_back(whole_host(root));
  return nodes;
}

std::vector<Node> Machine::host_nodes() {
  // It can't change while the process runs, and takes hwloc some time on large machines.
  static const std::vector<Node> nodes = [] {
    std::vector<Node> found = nodes_by_hwloc();
    return found.empty() ? nodes_by_files() : found;
  }();
  return nodes;
}

PciPlace pci_place(const std::string& address, const std::string& sys) {
  const fs::path folder = fs::path(sys) / "bus/pci/devices" / address;
  PciPlace place;
  place.generation = generation_of(first_line(folder / "max_link_speed"));
  place.lanes =
      static_cast<int>(number_at_start(first_line(folder / "max_link_width")).value_or(0));
  place.node = static_cast<int>(number_at_start(first_line(folder / "numa_node")).value_or(-1));
  return place;
}

}  // namespace quadriga
