// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/similar.h: smaller problems that behave as one that is too large to be simulated.
//
// A small problem resembles a large one if its tiles are the same, its devices hold the same part
// of the matrices (or as many of their columns, where that would leave too few tiles), and its
// links are faster or slower by as much as its tasks load more or less: then a task waits for its
// operands as in the large problem. What differs is the share of begin and end, which falls with
// the number of tiles along an edge; three sizes say how fast. docs/decisions/0065 says how well.
#pragma once

#include "linalg/kernels/codelet_parts.h"

#include <quadriga/linalg.h>

namespace quadriga::linalg {

/// A small problem on its machine, and what its figures are multiplied by.
struct Similar {
  Problem problem;
  Machine machine;
  double tasks = 0;  ///< Of products and factorizations, in closed form.
  double edge = 1;   ///< Tiles along an edge, over those of the large problem.
  double seconds = 1;
  double bytes = 1;
};

/// What is known of a problem without running it.
class Large {
 public:
  /// `model`: an engine on the machine, with times of all kernels; `tile` as the call would use,
  /// 0 where products are planned. Both outlive this.
  Large(const Engine& model, const Problem& problem, const Options& options);

  /// Of products and factorizations; solves and fills have fewer by an order.
  double tasks() const noexcept { return size_.tasks; }
  /// All tasks, by those that the program of a similar problem had.
  double tasks(const Similar& similar, std::uint64_t ended) const noexcept;
  /// Seconds of the longest chain of tasks, at least.
  double chain_seconds() const noexcept { return size_.chain; }
  /// A problem of so many tasks at most, or of a single tile.
  Similar similar(double tasks) const;

 private:
  struct Size {
    double tasks = 0;
    double work = 0;   ///< Seconds of all kernels on one device; of planned products the volume.
    double loads = 0;  ///< Tiles, or bytes of planned products, that come from the host.
    double chain = 0;
    bool is_listed = false;  ///< A planned product that devices hold.
  };
  Size size_of(const Problem& problem, std::int64_t memory) const;
  Size factorization(const Problem& problem, std::int64_t memory) const;
  Size product(const Problem& problem, std::int64_t memory) const;
  Size planned(const Engine& engine, const Problem& problem) const;
  /// With every length of several tiles divided.
  Problem shrunk(double factor) const;
  /// Tiles of a device's memory for a problem with lengths divided so.
  std::int64_t memory_for(const Problem& problem, double factor) const;
  Similar similar_by(double factor) const;
  /// Of a kernel on whole tiles.
  double seconds(const kernels::Names& kernel) const;

  const Engine& model_;
  Problem problem_;
  Options options_;
  bool is_planned_ = false;
  std::int64_t devices_ = 0;  ///< Accelerators.
  std::int64_t memory_ = 0;   ///< Tiles that one holds; 0: without them.
  Size size_;
};

}  // namespace quadriga::linalg
