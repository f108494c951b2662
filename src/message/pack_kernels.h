// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack_kernels.h: moves pieces of a layout from or to packed bytes, on one core.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/pack_walk.h"

namespace quadriga::message {

/// Kernel of a Walk: from where a layout's elements are to packed bytes.
class Gather {
 public:
  Gather(const std::byte* data, std::byte* packed, std::size_t segment) noexcept
      : data_(data), packed_(packed), segment_(segment) {}
  void plane(std::int64_t offset, const Plane& plane) noexcept;
  void part(std::int64_t offset, std::int64_t bytes) noexcept;
  void slice(std::int64_t base, const ListSlice& slice) noexcept;

 private:
  const std::byte* data_;
  std::byte* packed_;
  std::size_t segment_;
};

/// Kernel of a Walk: from packed bytes to where a layout's elements are.
class Scatter {
 public:
  Scatter(std::byte* data, const std::byte* packed, std::size_t segment) noexcept
      : data_(data), packed_(packed), segment_(segment) {}
  void plane(std::int64_t offset, const Plane& plane) noexcept;
  void part(std::int64_t offset, std::int64_t bytes) noexcept;
  void slice(std::int64_t base, const ListSlice& slice) noexcept;

 private:
  std::byte* data_;
  const std::byte* packed_;
  std::size_t segment_;
};

}  // namespace quadriga::message
