// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/element.h: the signature of a message's elements, which two sides must share.
#pragma once

#include <quadriga/message_types.h>

#include <cstdint>
#include <string>

namespace quadriga::message {

/// The sequence of a message's elements without their places, in constant size: how many there are,
/// and a polynomial of their types, so that sequences can be joined and repeated without a walk.
/// Beside it, what it is known to repeat: one element, the fields of a struct, or all of itself.
///
/// Equal sequences have equal signatures; others differ but for chance, 1 in 2^60.
/// Source:  Langou, Bosilca, Fagg, Dongarra, Hash functions for datatype signatures in MPI,
///          EuroPVM/MPI 2005 (the idea; the polynomial is over the integers modulo 2^61 - 1).
class ElementSignature {
 public:
  ElementSignature() = default;
  explicit ElementSignature(ElementType type) noexcept;
  /// As it arrived from another process.
  ElementSignature(std::uint64_t count, std::uint64_t hash, bool uniform,
                   ElementType type) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t hash() const noexcept { return hash_; }
  /// Whether all elements are of one type, which is type(); an empty sequence is uniform.
  bool uniform() const noexcept { return uniform_; }
  ElementType type() const noexcept { return type_; }
  bool operator==(const ElementSignature& other) const noexcept {
    return count_ == other.count_ && hash_ == other.hash_;
  }

  /// This sequence and then the other.
  ElementSignature followed_by(const ElementSignature& other) const noexcept;
  ElementSignature repeated(std::uint64_t times) const noexcept;
  /// What it repeats.
  ElementSignature period() const noexcept { return {period_, period_hash_, uniform_, type_}; }
  /// Whether it is the other, or begins with it after whole periods.
  bool begins_with(const ElementSignature& other) const noexcept;
  /// "12 float64", or "30 of several types".
  std::string text() const;

 private:
  std::uint64_t count_ = 0;
  std::uint64_t hash_ = 0;
  std::uint64_t period_ = 0;  ///< Elements of it.
  std::uint64_t period_hash_ = 0;
  bool uniform_ = true;
  ElementType type_ = ElementType::bytes;
};

}  // namespace quadriga::message
