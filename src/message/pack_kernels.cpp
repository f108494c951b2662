// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack_kernels.cpp: planes of units, runs of lists.
#include "message/pack_kernels.h"

#include <cstring>

namespace quadriga::message {

void Gather::part(std::int64_t offset, std::int64_t bytes) noexcept {
  std::memcpy(packed_, data_ + offset, static_cast<std::size_t>(bytes));
  packed_ += bytes;
}

void Gather::plane(std::int64_t offset, const Plane& plane) noexcept {
  for (std::int64_t row = 0; row < plane.rows; ++row) {
    for (std::int64_t unit = 0; unit < plane.units; ++unit)
      part(offset + row * plane.row_stride + unit * plane.unit_stride, plane.unit_bytes);
  }
}

void Gather::slice(std::int64_t base, const ListSlice& slice) noexcept {
  for (const ListedRun* run = slice.first; run != slice.first + slice.count; ++run)
    part(base + run->offset, run[1].packed - run->packed);
}

void Scatter::part(std::int64_t offset, std::int64_t bytes) noexcept {
  std::memcpy(data_ + offset, packed_, static_cast<std::size_t>(bytes));
  packed_ += bytes;
}

void Scatter::plane(std::int64_t offset, const Plane& plane) noexcept {
  for (std::int64_t row = 0; row < plane.rows; ++row) {
    for (std::int64_t unit = 0; unit < plane.units; ++unit)
      part(offset + row * plane.row_stride + unit * plane.unit_stride, plane.unit_bytes);
  }
}

void Scatter::slice(std::int64_t base, const ListSlice& slice) noexcept {
  for (const ListedRun* run = slice.first; run != slice.first + slice.count; ++run)
    part(base + run->offset, run[1].packed - run->packed);
}

}  // namespace quadriga::message
