// SPDX-License-Identifier: BSD-3-Clause
// src/device/topology_hwloc.cpp: the host's NUMA nodes by hwloc, whose library is opened when it is
// needed: programs run where it isn't installed.
#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "base/shared_library.h"
#include "device/topology.h"

namespace quadriga {
namespace {

// The functions that are used here, under their own types.
struct Hwloc {
  decltype(&hwloc_get_api_version) api_version = nullptr;
  decltype(&hwloc_topology_init) init = nullptr;
  decltype(&hwloc_topology_load) load = nullptr;
  decltype(&hwloc_topology_destroy) destroy = nullptr;
  decltype(&hwloc_get_type_depth) depth = nullptr;
  decltype(&hwloc_get_nbobjs_by_depth) count = nullptr;
  decltype(&hwloc_get_obj_by_depth) object = nullptr;
  decltype(&hwloc_bitmap_next) next = nullptr;
  decltype(&hwloc_bitmap_isincluded) is_included = nullptr;
};

bool open(const SharedLibrary& library, Hwloc& hwloc) {
  const auto find = [&library](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    return function != nullptr;
  };
  const bool complete =
      find("hwloc_get_api_version", hwloc.api_version) && find("hwloc_topology_init", hwloc.init) &&
      find("hwloc_topology_load", hwloc.load) && find("hwloc_topology_destroy", hwloc.destroy) &&
      find("hwloc_get_type_depth", hwloc.depth) && find("hwloc_get_nbobjs_by_depth", hwloc.count) &&
      find("hwloc_get_obj_by_depth", hwloc.object) && find("hwloc_bitmap_next", hwloc.next) &&
      find("hwloc_bitmap_isincluded", hwloc.is_included);
  // Structures may differ between major versions, and only there.
  return complete && (hwloc.api_version() >> 16) == (HWLOC_API_VERSION >> 16);
}

std::vector<Node> read(const Hwloc& hwloc, hwloc_topology_t topology) {
  std::vector<Node> nodes;
  const int cores = hwloc.depth(topology, HWLOC_OBJ_CORE);
  for (unsigned i = 0; i < hwloc.count(topology, HWLOC_TYPE_DEPTH_NUMANODE); ++i) {
    const hwloc_obj_t object = hwloc.object(topology, HWLOC_TYPE_DEPTH_NUMANODE, i);
    Node node;
    node.index = static_cast<int>(object->os_index);
    node.memory_bytes = object->attr->numanode.local_memory;
    for (int p = hwloc.next(object->cpuset, -1); p >= 0; p = hwloc.next(object->cpuset, p))
      node.processors.push_back(p);
    for (unsigned core = 0; cores >= 0 && core < hwloc.count(topology, cores); ++core)
      node.cores +=
          hwloc.is_included(hwloc.object(topology, cores, core)->cpuset, object->cpuset) != 0;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace

std::vector<Node> nodes_by_hwloc(const char* library) {
  // Where the kernel says nothing, as in some containers, hwloc would tell standard error.
  static const int quiet = ::setenv("HWLOC_HIDE_ERRORS", "2", 0);
  static_cast<void>(quiet);
  Hwloc hwloc;
  hwloc_topology_t topology = nullptr;
  if (!open(SharedLibrary(library), hwloc) || hwloc.init(&topology) != 0) return {};
  std::vector<Node> nodes;
  if (hwloc.load(topology) == 0) nodes = read(hwloc, topology);
  hwloc.destroy(topology);
  // Where the kernel's files aren't there it makes something up.
  if (std::ranges::any_of(nodes, [](const Node& node) { return node.memory_bytes == 0; }))
    return {};
  return nodes;
}

}  // namespace quadriga
