// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack_reduce.h: what is done with an element that arrives where there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "message/layout_element.h"

namespace quadriga::message {

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

/// into[i] = into[i] op from[i] for elements of a type that it knows; they may lie at any address.
using Combine = std::function<void(std::byte* into, const std::byte* from, std::size_t elements)>;

/// What MPI's operation does for a type of element. The minimum and maximum of numbers of which one
/// isn't a number is not a number.
/// Errors: invalid_argument naming both where the operation means nothing for the type.
Combine combine_of(ReduceOperation operation, ElementType type);

}  // namespace quadriga::message
