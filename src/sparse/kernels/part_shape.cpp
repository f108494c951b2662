// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_shape.cpp: arrays one after the other.
#include "sparse/kernels/part_shape.h"

#include "sparse/kernels/scalars.h"

namespace quadriga::sparse {
namespace {

/// Hands out aligned places.
class PartPlaces {
 public:
  std::int64_t take(std::int64_t count, std::size_t element_bytes) noexcept {
    const std::int64_t at = bytes_;
    bytes_ = aligned(bytes_ + count * static_cast<std::int64_t>(element_bytes));
    return at;
  }
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

}  // namespace

void lay_out(PartShape& shape) noexcept {
  PartPlaces layout;
  const bool has_slices = shape.format != Format::csr;
  const std::int64_t places = has_slices ? shape.slices * shape.slice_rows : 0;
  shape.block_order = layout.take(shape.blocks, sizeof(std::int32_t));
  shape.send_rows = layout.take(shape.sends, sizeof(std::int32_t));
  shape.inverses = layout.take(shape.rows * shape.inverse_rows, size_of(shape.dtype));
  shape.head_bytes = layout.bytes();
  shape.offsets = layout.take((has_slices ? shape.slices : shape.rows) + 1, sizeof(std::int64_t));
  shape.lengths = layout.take(places, sizeof(std::int32_t));
  shape.order = layout.take(places, sizeof(std::int32_t));
  shape.bases =
      layout.take(shape.narrow ? shape.elements / shape.slice_rows : 0, sizeof(std::int32_t));
  shape.columns = layout.take(stored_columns(shape),
                              shape.narrow ? sizeof(std::uint16_t) : sizeof(std::int32_t));
  shape.values = layout.take(shape.elements, size_of(shape.dtype));
  shape.bytes = layout.bytes();
}

WorkShape work_shape(const PartShape& part, std::int64_t columns, CgMethod method) noexcept {
  PartPlaces layout;
  WorkShape work;
  work.columns = columns;
  work.p = layout.take((part.rows + part.halo) * columns, size_of(part.dtype));
  work.q = layout.take(part.rows * columns, size_of(part.dtype));
  work.r = layout.take(part.rows * columns, size_of(part.dtype));
  work.arrived = layout.take(1, sizeof(std::uint32_t));
  if (part.has_remainders) work.partial = layout.take(part.rows * columns, size_of(part.dtype));
  work.method = method;
  if (method != CgMethod::classic) {
    RecurrencesShape& more = work.recurrences;
    const auto vector = [&] { return layout.take(part.rows * columns, size_of(part.dtype)); };
    more.direction = vector();
    more.product = vector();
    if (method == CgMethod::pipelined) {
      more.u = vector();
      more.w = vector();
      more.m_product = vector();
      more.am_product = vector();
    }
    more.states = layout.take(columns, sizeof(ColumnState));
  }
  work.bytes = layout.bytes();
  return work;
}

WorkShape work_shape(const LevelSize& size, std::int64_t columns) noexcept {
  PartPlaces layout;
  WorkShape work;
  work.columns = columns;
  work.has_levels = true;
  const auto vector = [&](std::int64_t rows) {
    return layout.take(rows * columns, size_of(size.dtype));
  };
  work.p = vector(size.is_finest ? size.rows + size.halo_of_d : 0);
  work.q = vector(size.rows);
  work.r = vector(size.is_finest ? size.rows : 0);
  work.z = vector(size.rows + size.halo_of_z);
  work.d = vector(size.rows + size.halo_of_d);
  work.s = vector(size.rows + size.halo_of_s);
  work.arrived = layout.take(1, sizeof(std::uint32_t));
  work.bytes = layout.bytes();
  return work;
}

}  // namespace quadriga::sparse
