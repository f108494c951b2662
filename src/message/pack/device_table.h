// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/device_table.h: lists of runs as tables for a device, a slice at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "message/pack/device_plan.h"

namespace quadriga::message {

/// Runs of a list that one table describes.
struct RunSlice {
  std::int64_t first = 0;  ///< Run of the list.
  std::int64_t runs = 0;
  std::int64_t begin = 0;  ///< Packed byte of the list.
  std::int64_t end = 0;
};

/// Cuts a list into slices of at most `most_runs`; the last one may be smaller.
std::vector<RunSlice> slices_of(const RunList& list, std::int64_t most_runs);

/// What a slice's table takes, and how it is written.
class TableShape {
 public:
  TableShape(const RunList& list, const RunSlice& slice);
  std::size_t bytes() const noexcept { return bytes_; }
  /// Writes the table to `into`, which has bytes() and an address divisible by 8.
  void write(std::byte* into) const;
  /// The table once it is at `address`, of the host or a device.
  ListTable at(const std::byte* address) const noexcept;

 private:
  std::span<const ListedRun> runs_;  // One more than there are runs.
  ListTable table_;
  std::int64_t units_ = 0;
  std::size_t positions_at_ = 0;
  std::size_t first_at_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace quadriga::message
