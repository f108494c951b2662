// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/product_times.h: how long tiles of a product take to bring, to multiply, to send home.
#pragma once

#include "linalg/device_group.h"

#include <quadriga/linalg.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace quadriga::linalg {

/// By a machine's table of kernels and the rates of its links; all in seconds.
class ProductTimes {
 public:
  ProductTimes(const Engine& engine, const DeviceGroup& group, const Problem& problem);

  const Machine& machine() const noexcept { return engine_.machine(); }
  double element_bytes() const noexcept { return element_; }
  /// Whether devices give each other what they brought.
  bool has_peers() const noexcept { return has_peers_; }
  /// Of tiles of A with rows x inner and of C with rows x cols.
  double product(std::int64_t rows, std::int64_t cols, std::int64_t inner) const;
  /// The same on a device of the group, where copies are queued meanwhile.
  double product(std::int64_t rows, std::int64_t cols, std::int64_t inner, std::size_t place) const;
  /// What a copy of so many rows of a matrix's reaches of its links' rate.
  double share(std::int64_t rows, std::int64_t all_rows) const;
  /// Kernels that a device runs at once.
  std::size_t streams() const;
  /// Rows of a tile whose runs reach all of their links' rate.
  std::int64_t full_run() const;
  /// To bring rows x cols of a matrix of so many rows to a device, while all others do so too.
  double copy(std::int64_t rows, std::int64_t cols, std::int64_t all_rows) const;
  /// Appends all that these times follow from: where it is equal, so are they.
  void append_to(std::vector<double>& key) const;

 private:
  const Engine& engine_;
  const DeviceGroup& group_;
  std::string_view kernel_;
  double element_;
  bool has_peers_ = false;
};

/// Whether the machine's table tells products' times on the group.
bool knows_products(const Engine& engine, const DeviceGroup& group, DType dtype);

}  // namespace quadriga::linalg
