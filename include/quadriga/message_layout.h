// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/message_layout.h: where the elements of a message are in memory, and in which
// order they travel.
#pragma once

#include <quadriga/message_types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace quadriga::message {

struct Canonical;
class ElementSignature;

/// Which index of an array is the slowest: the first (C) or the last (Fortran).
enum class StorageOrder : std::uint8_t { c, fortran };
/// Which half of a square matrix.
enum class Half : std::uint8_t { lower, upper };

/// A square matrix's half, as its elements lie in memory.
struct TrianglePart {
  std::int64_t order = 0;              ///< Rows, and columns.
  std::int64_t leading_dimension = 0;  ///< Elements from a row (C) or column (Fortran) to the next.
  Half half = Half::lower;
  StorageOrder storage = StorageOrder::c;
  bool diagonal = true;  ///< Whether the diagonal belongs to it.
};

/// One process's part of an array that is dealt out in blocks, as ScaLAPACK does and MPI's darray.
struct BlockCyclic {
  std::vector<std::int64_t> shape;        ///< Of the whole array.
  std::vector<std::int64_t> block;        ///< Elements of a block along each dimension.
  std::vector<std::int64_t> processes;    ///< The grid of processes; 1: not dealt out.
  std::vector<std::int64_t> coordinates;  ///< This process's place in the grid.
  StorageOrder order = StorageOrder::c;
  /// Whether the elements lie as in the whole array (as darray's), or as in this process's part.
  bool in_whole = true;
};

/// Where the elements of a message are, in the order in which they travel: a pure value.
///
/// Offsets count bytes from the address that the layout is used with, as MPI's displacements.
/// Layouts of equal elements at equal places in equal order are equal, however they were made.
/// A sender's and a receiver's layout may differ if their elements are equal in type and order.
/// Errors of all makers: invalid_argument naming the number that is wrong; too_large if sizes or
/// offsets reach 2^62 bytes, or runs that no rule describes are more than 2^26.
class Layout {
 public:
  /// Nothing.
  Layout();
  /// One element.
  Layout(ElementType type);

  /// `count` one after the other, each an extent after the last.
  static Layout contiguous(std::int64_t count, const Layout& of);
  /// `count` blocks of `length`, `stride` extents apart.
  static Layout vector(std::int64_t count, std::int64_t length, std::int64_t stride,
                       const Layout& of);
  /// The same with the stride in bytes (MPI's hvector).
  static Layout vector_bytes(std::int64_t count, std::int64_t length, std::int64_t stride_bytes,
                             const Layout& of);
  /// The part of an array of `shape` that begins at `start`; its extent is the whole array's.
  static Layout subarray(std::span<const std::int64_t> shape, std::span<const std::int64_t> part,
                         std::span<const std::int64_t> start, StorageOrder order, const Layout& of);
  /// Blocks of lengths[i] at displacements[i] extents.
  static Layout indexed(std::span<const std::int64_t> lengths,
                        std::span<const std::int64_t> displacements, const Layout& of);
  /// The same with displacements in bytes (MPI's hindexed).
  static Layout indexed_bytes(std::span<const std::int64_t> lengths,
                              std::span<const std::int64_t> displacements, const Layout& of);
  /// lengths[i] of fields[i] at displacements[i] bytes; nothing is added for alignment.
  static Layout structure(std::span<const std::int64_t> lengths,
                          std::span<const std::int64_t> displacements,
                          std::span<const Layout> fields);
  /// The same elements with another lower bound and extent, in bytes.
  static Layout resized(const Layout& of, std::int64_t lower, std::int64_t extent);
  static Layout block_cyclic(const BlockCyclic& part, const Layout& of);
  /// In the order in which a matrix stored so has them: row by row, or column by column.
  static Layout triangle(const TrianglePart& triangle, const Layout& of);
  /// A view of any strides in bytes, the last index fastest; offset 0 is its first element.
  static Layout view(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                     const Layout& of);

  /// Packed bytes of all elements.
  std::int64_t bytes() const noexcept;
  /// Elements.
  std::int64_t count() const noexcept;
  /// Where one begins and ends for what is made of several, as MPI's bounds: bytes.
  std::int64_t lower() const noexcept;
  std::int64_t upper() const noexcept;
  /// From where one begins to where the next one does.
  std::int64_t extent() const noexcept;
  /// Least offset of a byte that belongs to it, and one past the greatest.
  std::pair<std::int64_t, std::int64_t> bounds() const noexcept;

  /// Whether a byte belongs to several elements: such a layout can only send.
  /// Errors: too_large where strides interleave so widely that finding out takes too long.
  /// Cost:   found out once for all copies of this value.
  bool overlapping() const;
  /// Errors: invalid_argument if it overlaps, naming it.
  void check_receives() const;
  /// "strides 3 x 100 B of runs of 16 B, 6 float64".
  std::string text() const;
  std::uint64_t hash() const noexcept;
  /// The same elements at the same places in the same order, with the same extent.
  bool operator==(const Layout& other) const noexcept;

  // For the library itself.
  const ElementSignature& elements() const noexcept;
  const Canonical& form() const noexcept;
  static Layout from_parts(Canonical form, const ElementSignature& elements, std::int64_t lower,
                           std::int64_t extent);
  void check_same_elements(const ElementSignature& other) const;

 private:
  struct Parts;
  explicit Layout(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace quadriga::message
