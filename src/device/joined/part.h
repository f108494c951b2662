// SPDX-License-Identifier: BSD-3-Clause
// src/device/joined/part.h: the devices of a machine that one of several backends drives.
#pragma once

#include <quadriga/machine.h>

#include <vector>

namespace quadriga {

/// Some devices of a machine as a machine of their own, with what joins them and the host.
struct MachinePart {
  Machine machine;
  std::vector<DeviceId> devices;  ///< The whole's numbers of its devices.
  std::vector<SpaceId> spaces;    ///< Its own numbers, by those of the whole; no_space: not its.
};

/// The parts of a machine, one for each kind of device, in the order in which kinds come first.
///
/// Errors:  unavailable if a route joins the memories of devices of two kinds: such copies go by
/// way
///          of the host's.
std::vector<MachinePart> parts_by_kind(const Machine& machine);

}  // namespace quadriga
