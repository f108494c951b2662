// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/bound.h: the least time in which a stream can pass a machine, whatever the schedule.
//
// Work may be divided between devices as finely as one likes, or in equal pieces, of which each
// device has a whole number. A resource (a device's kernels, a direction of copies, a shared link,
// a group of cores, a serial stage) is busy for what each device's share asks of it, and idle for
// what the first chunk needs to get there and the last one to get out. The bound is the least T at
// which shares exist that keep each resource within T.
//
// Source:  Ino, Nakagawa, Hagihara, GPU-Chariot, IEICE Trans. E96-D(12), 2013, appendix C, which
//          takes equal shares and the smaller one of two bounds; both hold only of equal devices.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace quadriga {

/// Something that chunks pass one after the other.
struct StreamResource {
  std::string name;
  std::vector<double> seconds;  ///< By device: busy time if that device had all the work.
  double fixed = 0;             ///< Busy seconds, whichever devices have the work.
  /// Seconds before its first and behind its last work in which it can't be busy.
  double idle = 0;
};

struct StreamBound {
  double seconds = 0;
  std::vector<double> shares;  ///< Of the work, by device; their sum is 1.
  std::size_t limit = 0;       ///< Index of the resource whose relief would gain most.
};

/// The least time, to a relative error of 1e-9. With pieces, what a device can do alone is a whole
/// number of them, but what devices share is divided finely: no schedule takes less.
///
/// Shapes:  each resource's `seconds` has `devices` entries, infinite where a device can't work;
///          `pieces`, of equal size, are the work; 0: it is divided as finely as one likes.
/// Errors:  invalid_argument if no device can do the work.
StreamBound stream_bound(std::span<const StreamResource> resources, std::size_t devices,
                         std::size_t pieces = 0);

}  // namespace quadriga
