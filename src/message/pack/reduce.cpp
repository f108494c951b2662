// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/reduce.cpp: MPI's operations on elements side by side, at any address.
#include "message/pack/reduce.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>

#include "message/pack/half.h"
#include "message/pack/operations.h"

namespace quadriga::message {
namespace {

constexpr std::array<std::string_view, reduce_operations> names{
    "sum", "prod", "min", "max", "land", "lor", "lxor", "band", "bor", "bxor"};

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

template <class T, class Op>
void combine(std::byte* into, const std::byte* from, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    const T result = Op::template of<T>(a, b);
    std::memcpy(into + i * sizeof(T), &result, sizeof(T));
  }
}

template <class T>
Combine arithmetic(ReduceOperation operation) {
  if (operation == ReduceOperation::sum) return combine<T, Sum>;
  if (operation == ReduceOperation::prod) return combine<T, Prod>;
  if constexpr (!is_complex<T>) {
    if (operation == ReduceOperation::min) return combine<T, Min>;
    if (operation == ReduceOperation::max) return combine<T, Max>;
  }
  return {};
}

template <class T>
Combine bitwise(ReduceOperation operation) {
  if (operation == ReduceOperation::band) return combine<T, Band>;
  if (operation == ReduceOperation::bor) return combine<T, Bor>;
  if (operation == ReduceOperation::bxor) return combine<T, Bxor>;
  return {};
}

template <class T>
Combine logical(ReduceOperation operation) {
  if (operation == ReduceOperation::land) return combine<T, Land>;
  if (operation == ReduceOperation::lor) return combine<T, Lor>;
  if (operation == ReduceOperation::lxor) return combine<T, Lxor>;
  return {};
}

template <class T>
Combine integral(ReduceOperation operation) {
  if (operation >= ReduceOperation::band) return bitwise<T>(operation);
  if (operation >= ReduceOperation::land) return logical<T>(operation);
  return arithmetic<T>(operation);
}

// Truth values are 0 or 1, so that bits and truth are the same, a sum is `or`, a product `and`.
Combine of_booleans(ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::sum:
    case ReduceOperation::max:
    case ReduceOperation::lor:
    case ReduceOperation::bor:
      return combine<std::uint8_t, Lor>;
    case ReduceOperation::lxor:
    case ReduceOperation::bxor:
      return combine<std::uint8_t, Lxor>;
    default:
      return combine<std::uint8_t, Land>;
  }
}

Combine of_integers(ReduceOperation operation, ElementType type) {
  switch (type) {
    case ElementType::int8:
      return integral<std::int8_t>(operation);
    case ElementType::int16:
      return integral<std::int16_t>(operation);
    case ElementType::int32:
      return integral<std::int32_t>(operation);
    case ElementType::int64:
      return integral<std::int64_t>(operation);
    case ElementType::uint8:
      return integral<std::uint8_t>(operation);
    case ElementType::uint16:
      return integral<std::uint16_t>(operation);
    case ElementType::uint32:
      return integral<std::uint32_t>(operation);
    default:
      return integral<std::uint64_t>(operation);
  }
}

Combine of_type(ReduceOperation operation, ElementType type) {
  switch (type) {
    case ElementType::bytes:
      return bitwise<std::uint8_t>(operation);
    case ElementType::boolean:
      return of_booleans(operation);
    case ElementType::float16:
      return arithmetic<Float16>(operation);
    case ElementType::bfloat16:
      return arithmetic<BFloat16>(operation);
    case ElementType::float32:
      return arithmetic<float>(operation);
    case ElementType::float64:
      return arithmetic<double>(operation);
    case ElementType::complex64:
      return arithmetic<std::complex<float>>(operation);
    case ElementType::complex128:
      return arithmetic<std::complex<double>>(operation);
    default:
      return of_integers(operation, type);
  }
}

}  // namespace

std::string_view name(ReduceOperation operation) noexcept {
  return names[static_cast<std::size_t>(operation)];
}

ReduceOperation reduce_operation_of(std::string_view wanted) {
  const auto found = std::ranges::find(names, wanted);
  if (found == names.end())
    fail(Errc::invalid_argument,
         fmt::format("reduce: no operation '{}'; there are {}", wanted, fmt::join(names, " ")));
  return static_cast<ReduceOperation>(found - names.begin());
}

Combine combine_of(ReduceOperation operation, ElementType type) {
  Combine combine = of_type(operation, type);
  if (!combine)
    fail(Errc::invalid_argument,
         fmt::format("reduce: {} isn't defined for elements of {}", name(operation), name(type)));
  return combine;
}

}  // namespace quadriga::message
