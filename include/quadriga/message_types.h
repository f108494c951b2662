// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/message_types.h: elements of messages, operations on them, what was received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace quadriga::message {

/// Stands for any rank, and any tag, in a receive or a probe.
inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;

/// What an element is. `bytes` are opaque: moved, never computed with.
enum class ElementType : std::uint8_t {
  bytes,
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
};
inline constexpr int element_types = 16;

/// Bytes of an element.
std::size_t size_of(ElementType type) noexcept;
/// "float64" and so on, as NumPy's.
std::string_view name(ElementType type) noexcept;

/// MPI's operations: land, lor and lxor take elements as true or false, band, bor and bxor bit by
/// bit. Complex numbers have sum and prod, bytes the bitwise ones.
enum class ReduceOperation : std::uint8_t {
  sum,
  prod,
  min,
  max,
  land,
  lor,
  lxor,
  band,
  bor,
  bxor,
};
inline constexpr int reduce_operations = 10;

std::string_view name(ReduceOperation operation) noexcept;

/// How collectives combine elements: an operation, or one that is reproducible().
struct ReduceRule {
  // NOLINTNEXTLINE(google-explicit-constructor): an operation alone says it too.
  constexpr ReduceRule(ReduceOperation by = ReduceOperation::sum) noexcept : operation(by) {}
  ReduceOperation operation;
  bool reproducible = false;
};
/// In an order that the number of ranks and the root alone decide: the same bits whatever the size
/// and wherever the data are. All ranks must ask for it.
constexpr ReduceRule reproducible(ReduceOperation operation) noexcept {
  ReduceRule made(operation);
  made.reproducible = true;
  return made;
}

/// What was received, or could be.
struct Status {
  int source = -1;  ///< A rank of the communicator.
  int tag = -1;
  std::size_t bytes = 0;  ///< Of the message, which may be less than there was room for.
};

/// Whether a type is a complex number: two values of one type of float, `real()` and `imag()`.
template <class T>
concept ComplexElement = requires(const T& value) {
  typename T::value_type;
  value.real();
  value.imag();
}
&&std::is_floating_point_v<typename T::value_type> &&
    sizeof(T) == 2 * sizeof(typename T::value_type);

/// Types that a message's elements may have; records travel by a Layout.
template <class T>
concept Element = std::is_same_v<T, std::byte> ||
                  (ComplexElement<T> && (sizeof(T) == 8 || sizeof(T) == 16)) ||
                  (std::is_arithmetic_v<T> && sizeof(T) <= 8);

/// What elements of a C++ type are in a message; characters are integers of 8 bits.
template <Element T>
constexpr ElementType element_type() noexcept {
  if constexpr (std::is_same_v<T, std::byte>) {
    return ElementType::bytes;
  } else if constexpr (std::is_same_v<T, bool>) {
    return ElementType::boolean;
  } else if constexpr (ComplexElement<T>) {
    return sizeof(T) == 8 ? ElementType::complex64 : ElementType::complex128;
  } else if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 4 ? ElementType::float32 : ElementType::float64;
  } else {
    constexpr int width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    constexpr auto first = std::is_signed_v<T> ? ElementType::int8 : ElementType::uint8;
    return static_cast<ElementType>(static_cast<int>(first) + width);
  }
}

}  // namespace quadriga::message
