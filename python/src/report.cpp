// SPDX-License-Identifier: BSD-3-Clause
// python/src/report.cpp: counters as a dictionary, which quadriga.counters turns into dataclasses.
#include <nanobind/nanobind.h>
#include <quadriga/report.h>

#include "bindings.h"

namespace quadriga::python {
namespace {

nb::dict link_as_dict(const LinkCounters& link) {
  nb::dict dict;
  dict["source"] = link.source;
  dict["target"] = link.target;
  dict["bytes"] = link.bytes;
  dict["copies"] = link.copies;
  return dict;
}

nb::dict device_as_dict(const DeviceCounters& device) {
  constexpr const char* kinds[] = {"copy_in", "copy_out", "peer_in", "compute", "panel"};
  constexpr double second = 1e9;
  nb::dict busy;
  for (std::size_t i = 0; i < device.busy.size(); ++i)
    busy[kinds[i]] = static_cast<double>(device.busy[i]) / second;
  nb::dict dict;
  dict["tasks"] = device.tasks;
  dict["hits"] = device.hits;
  dict["misses"] = device.misses;
  dict["prefetches"] = device.prefetches;
  dict["evictions"] = device.evictions;
  dict["write_backs"] = device.write_backs;
  dict["steals"] = device.steals;
  dict["most_bytes"] = device.most_bytes;
  dict["arena_bytes"] = device.arena_bytes;
  dict["library_bytes"] = device.library_bytes;
  dict["busy_seconds"] = busy;
  dict["copying_seconds"] = static_cast<double>(device.copying) / second;
  dict["computing_seconds"] = static_cast<double>(device.computing) / second;
  dict["overlap_seconds"] = static_cast<double>(device.overlap) / second;
  return dict;
}

nb::dict renaming_as_dict(const RenamingCounters& renaming) {
  nb::dict dict;
  dict["renamed"] = renaming.renamed;
  dict["refused"] = renaming.refused;
  dict["copied"] = renaming.copied;
  dict["most_bytes"] = renaming.most_bytes;
  return dict;
}

}  // namespace

nb::typed<nb::dict, nb::str, nb::any> counters_as_dict(const Counters& counters) {
  nb::list links;
  for (const LinkCounters& link : counters.links) links.append(link_as_dict(link));
  nb::list devices;
  for (const DeviceCounters& device : counters.devices) devices.append(device_as_dict(device));
  nb::dict dict;
  dict["links"] = links;
  dict["devices"] = devices;
  dict["submitted"] = counters.submitted;
  dict["ended"] = counters.ended;
  dict["failed"] = counters.failed;
  dict["elapsed_seconds"] = static_cast<double>(counters.elapsed) / 1e9;
  dict["spill_bytes"] = counters.spill_bytes;
  dict["work_seconds"] = counters.work_seconds;
  dict["critical_path_seconds"] = counters.critical_path_seconds;
  dict["renaming"] = renaming_as_dict(counters.renaming);
  return dict;
}

}  // namespace quadriga::python
