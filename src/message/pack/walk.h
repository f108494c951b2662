// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/walk.h: cuts a range of packed bytes into pieces that a kernel moves at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "message/layout/form.h"

namespace quadriga::message {

/// `rows` rows of `units` units of `unit_bytes`; packed they lie one after the other.
struct Plane {
  std::int64_t rows = 1;
  std::int64_t row_stride = 0;
  std::int64_t units = 1;
  std::int64_t unit_stride = 0;
  std::int64_t unit_bytes = 0;
};

/// The runs `first` to `first + count` of a list, all whole.
struct ListSlice {
  const ListedRun* first = nullptr;
  std::int64_t count = 0;
};

/// Where a block of a form is: an odometer of its strides.
class BlockPosition {
 public:
  BlockPosition(const Canonical& form, std::int64_t block) : form_(form), base_(form.origin) {
    for (std::size_t level = form.strides.size(); level-- > 0;) {
      const Stride& stride = form.strides[level];
      index_[level] = block % stride.count;
      block /= stride.count;
      base_ += index_[level] * stride.bytes;
    }
  }
  std::int64_t base() const noexcept { return base_; }
  /// The index of the stride `outward` levels from the innermost one.
  std::int64_t index(std::size_t outward) const noexcept {
    return index_[form_.strides.size() - 1 - outward];
  }
  /// Moves on by `count` of the stride `outward` levels from the innermost one, whose index may
  /// reach its end, but not pass it.
  void advance(std::size_t outward, std::int64_t count) noexcept {
    for (std::size_t level = form_.strides.size() - outward; level-- > 0; count = 1) {
      const Stride& stride = form_.strides[level];
      index_[level] += count;
      base_ += count * stride.bytes;
      if (index_[level] < stride.count) return;
      base_ -= stride.count * stride.bytes;
      index_[level] = 0;
    }
  }

 private:
  const Canonical& form_;
  std::int64_t base_;
  std::array<std::int64_t, most_strides> index_{};
};

/// Passes the packed bytes `begin` to `end` of a form to a kernel, in order and in as large pieces
/// as there are:
///   plane(offset, plane)       whole units
///   part(offset, bytes)        bytes of one run
///   slice(base, slice)         whole runs of a list
template <class Kernel>
class Walk {
 public:
  Walk(const Canonical& form, std::int64_t begin, std::int64_t end, Kernel& kernel)
      : form_(form), kernel_(kernel), position_(form, begin / form.block_bytes) {
    const std::int64_t within = begin % form.block_bytes;
    left_ = end - begin;
    if (form.leaf == Leaf::run) {
      runs(within);
      return;
    }
    for (std::int64_t from = within; left_ > 0; from = 0) {
      const std::int64_t bytes = std::min(left_, form.block_bytes - from);
      leaf(from, from + bytes);
      left_ -= bytes;
      position_.advance(0, 1);
    }
  }

 private:
  const Stride& stride(std::size_t outward) const {
    return form_.strides[form_.strides.size() - 1 - outward];
  }

  void part(std::int64_t offset, std::int64_t bytes) {
    if (bytes > 0) kernel_.part(offset, bytes);
  }

  void runs(std::int64_t within) {
    const std::int64_t unit = form_.block_bytes;
    if (within) {
      const std::int64_t bytes = std::min(left_, unit - within);
      part(position_.base() + within, bytes);
      left_ -= bytes;
      if (!form_.strides.empty()) position_.advance(0, 1);
    }
    while (left_ >= unit) units();
    part(position_.base(), left_);
  }

  void units() {
    const std::int64_t unit = form_.block_bytes;
    Plane plane{1, 0, 1, 0, unit};
    const std::int64_t offset = position_.base();
    if (!form_.strides.empty()) {
      const std::int64_t in_row = stride(0).count, at = position_.index(0);
      plane.unit_stride = stride(0).bytes;
      const std::int64_t rows = at == 0 && form_.strides.size() > 1 ? left_ / (in_row * unit) : 0;
      if (rows > 0) {
        plane.units = in_row;
        plane.rows = std::min(rows, stride(1).count - position_.index(1));
        plane.row_stride = stride(1).bytes;
        position_.advance(1, plane.rows);
      } else {
        plane.units = std::min(in_row - at, left_ / unit);
        position_.advance(0, plane.units);
      }
    }
    left_ -= plane.rows * plane.units * unit;
    kernel_.plane(offset, plane);
  }

  // Packed bytes `from` to `to` of one leaf.
  void leaf(std::int64_t from, std::int64_t to) {
    const std::int64_t base = position_.base();
    std::int64_t index = form_.run_at(from);
    const std::int64_t before = packed_before(index);
    if (from > before) {
      const ByteRun run = form_.run(index++);
      const std::int64_t skipped = from - before;
      part(base + run.offset + skipped, std::min(run.bytes - skipped, to - from));
    }
    std::int64_t last = to == form_.block_bytes ? form_.leaf_runs() : form_.run_at(to);
    if (last > index) whole_runs(base, index, last);
    if (last >= index && last < form_.leaf_runs())
      part(base + form_.run(last).offset, to - packed_before(last));
  }

  std::int64_t packed_before(std::int64_t index) const {
    return form_.leaf == Leaf::taper ? form_.taper.before(index)
                                     : (*form_.list)[static_cast<std::size_t>(index)].packed;
  }

  void whole_runs(std::int64_t base, std::int64_t first, std::int64_t last) {
    if (form_.leaf == Leaf::list) {
      kernel_.slice(base, ListSlice{form_.list->data() + first, last - first});
      return;
    }
    for (std::int64_t i = first; i < last; ++i) {
      const ByteRun run = form_.run(i);
      part(base + run.offset, run.bytes);
    }
  }

  const Canonical& form_;
  Kernel& kernel_;
  BlockPosition position_;
  std::int64_t left_ = 0;
};

}  // namespace quadriga::message
