// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/load.h: what chunks ask of a machine, added up, as the resources of a bound. Pure.
#pragma once

#include <quadriga/machine.h>

#include <vector>

#include "pipeline/bound.h"

namespace quadriga {

/// What one chunk asks of devices.
struct ChunkLoad {
  double bytes_in = 0;
  double bytes_out = 0;
  std::vector<double> kernel_seconds = {};  ///< By device; infinite where it can't run.
  bool costs_known = true;                  ///< Whether these are all of its kernels'.

  bool operator==(const ChunkLoad&) const = default;
};

/// The work of a stream, with the smallest of it, by which kernels can't begin at once nor results
/// be home with the last kernel.
class StreamLoad {
 public:
  /// `devices` of a machine, which outlives this.
  StreamLoad(const Machine& machine, std::vector<DeviceId> devices);

  void add(const ChunkLoad& chunk, std::size_t count = 1);
  /// Those of kernels and copies. Chunks that follow one another over a link do so from the first.
  std::vector<StreamResource> resources() const;
  std::size_t chunks() const noexcept { return chunks_; }
  /// How many chunks there are if all ask for the same, else 0.
  std::size_t equal_chunks() const noexcept { return are_equal_ ? chunks_ : 0; }
  std::size_t devices() const noexcept { return devices_.size(); }

 private:
  double copy_seconds(SpaceId from, SpaceId to, double bytes) const;
  std::vector<double> head_seconds() const;
  void add_copies(std::vector<StreamResource>& found, const std::vector<double>& heads) const;
  void add_links(std::vector<StreamResource>& found) const;
  double total_on(const Route* route, std::size_t link, double bytes) const;

  const Machine& machine_;
  std::vector<DeviceId> devices_;
  std::size_t chunks_ = 0;
  ChunkLoad first_;
  bool are_equal_ = true;
  double bytes_in_ = 0;
  double bytes_out_ = 0;
  std::vector<double> smallest_in_;  ///< Ascending; as many as there are devices.
  double smallest_out_ = 0;
  std::vector<double> kernel_seconds_;
  std::vector<double> smallest_kernel_;
};

}  // namespace quadriga
