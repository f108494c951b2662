// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/datatypes.h: layouts of MPI's datatypes, found out once for each.
#pragma once

#include <quadriga/message_types.h>

#include <cstdint>
#include <memory>

#include "message/layout/layout.h"
#include "mpi/native.h"

namespace quadriga::mpi {

/// What is known of a datatype: a value that outlives the handle.
///
/// Elements are bytes here: MPI lets an MPI_DOUBLE be received as eight MPI_BYTE or as MPI_PACKED,
/// so what a message's two sides must share is their size.
class Datatype : public std::enable_shared_from_this<Datatype> {
 public:
  /// `leaf_bytes` is how long each element is, 0 if they differ; a lasting type is MPI's own, whose
  /// handle is never another type's.
  Datatype(message::Layout layout, std::int64_t leaf_bytes, bool is_lasting)
      : layout_(std::move(layout)),
        first_(layout_.bytes() > 0 ? layout_.bounds().first : 0),
        leaf_bytes_(leaf_bytes),
        is_lasting_(is_lasting) {}
  bool is_lasting() const noexcept { return is_lasting_; }
  /// From a buffer's address to its first byte.
  std::int64_t first() const noexcept { return first_; }
  /// Whether a message of so many bytes ends with an element.
  bool ends_with_element(std::int64_t bytes) const noexcept {
    return leaf_bytes_ > 0 && bytes % leaf_bytes_ == 0;
  }
  std::int64_t bytes() const noexcept { return layout_.bytes(); }
  const message::Layout& one() const noexcept { return layout_; }
  /// That many of them, an extent apart.
  message::Layout times(std::int64_t count) const;

 private:
  message::Layout layout_;
  std::int64_t first_ = 0;
  std::int64_t leaf_bytes_ = 0;
  bool is_lasting_ = false;
};
using DatatypePtr = std::shared_ptr<const Datatype>;

/// Finds it out at first use, by what the type was made of; valid until the program frees its
/// handle. Errors: invalid_argument if it isn't committed, or was made by a maker that isn't known;
/// those of Layout.
const Datatype& type_at(MPI_Datatype datatype);
/// The same for as long as it is kept.
inline DatatypePtr datatype_of(MPI_Datatype datatype) {
  return type_at(datatype).shared_from_this();
}
/// Its handle may be another type's from now on.
void forget(MPI_Datatype datatype) noexcept;
/// What MPI says of its handle, without asking for its layout.
std::int64_t bytes_of(MPI_Datatype datatype) noexcept;

/// The layout by MPI's description of a datatype.
message::Layout decode(MPI_Datatype datatype);
/// Whether it is one of MPI's own.
bool is_named(MPI_Datatype datatype);
/// Bytes of each of its elements; 0 if they differ.
std::int64_t leaf_bytes(MPI_Datatype datatype);

}  // namespace quadriga::mpi
