// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/reduce_tiles.h: what one thread does for one tile of a part that is combined
// with what is there.
#pragma once

#include <quadriga/message_types.h>

#include <bit>
#include <cmath>

#include "message/kernels/pack_tiles.h"
#include "message/pack/operations.h"

namespace quadriga::message {

/// A complex number for devices; its product is the host's to the bit, infinite parts too.
/// Source:  ISO/IEC 9899:2011, annex G.5.1.
template <class T>
struct PlainComplex {
  T real{}, imag{};
  constexpr PlainComplex operator+(const PlainComplex& other) const {
    return {real + other.real, imag + other.imag};
  }
  constexpr PlainComplex operator*(const PlainComplex& other) const {
    const PlainComplex product = times(*this, other);
    if (product.real == product.real || product.imag == product.imag) return product;
    return recovered(*this, other);
  }

 private:
  static constexpr PlainComplex times(PlainComplex a, PlainComplex b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
  }
  static constexpr T zero_if_none(T value) {
    return value != value ? std::copysign(T{0}, value) : value;
  }
  static constexpr T boxed(T value) {
    return std::copysign(std::isinf(value) ? T{1} : T{0}, value);
  }
  // Both parts of the product are no numbers: an infinite factor makes an infinite product.
  static constexpr PlainComplex recovered(PlainComplex a, PlainComplex b) {
    const PlainComplex plain = times(a, b);
    const bool of_products = std::isinf(a.real * b.real) || std::isinf(a.imag * b.imag) ||
                             std::isinf(a.real * b.imag) || std::isinf(a.imag * b.real);
    bool again = false;
    if (std::isinf(a.real) || std::isinf(a.imag)) {
      a = {boxed(a.real), boxed(a.imag)};
      b = {zero_if_none(b.real), zero_if_none(b.imag)};
      again = true;
    }
    if (std::isinf(b.real) || std::isinf(b.imag)) {
      b = {boxed(b.real), boxed(b.imag)};
      a = {zero_if_none(a.real), zero_if_none(a.imag)};
      again = true;
    }
    if (!again && of_products) {
      a = {zero_if_none(a.real), zero_if_none(a.imag)};
      b = {zero_if_none(b.real), zero_if_none(b.imag)};
      again = true;
    }
    if (!again) return plain;
    const PlainComplex scaled = times(a, b);
    return {T(INFINITY) * scaled.real, T(INFINITY) * scaled.imag};
  }
};

template <class T>
inline constexpr bool has_order = true;
template <class T>
inline constexpr bool has_order<PlainComplex<T>> = false;

template <class T>
constexpr T combined(ReduceOperation operation, T a, T b) {
  if (operation == ReduceOperation::sum) return Sum::of(a, b);
  if (operation == ReduceOperation::prod) return Prod::of(a, b);
  if constexpr (has_order<T>) {
    if (operation == ReduceOperation::min) return Min::of(a, b);
    if (operation == ReduceOperation::max) return Max::of(a, b);
  }
  if constexpr (std::is_integral_v<T>) {
    if (operation == ReduceOperation::land) return Land::of(a, b);
    if (operation == ReduceOperation::lor) return Lor::of(a, b);
    if (operation == ReduceOperation::lxor) return Lxor::of(a, b);
    if (operation == ReduceOperation::band) return Band::of(a, b);
    if (operation == ReduceOperation::bor) return Bor::of(a, b);
    if (operation == ReduceOperation::bxor) return Bxor::of(a, b);
  }
  return a;
}

/// An element, byte by byte where its address isn't a multiple of its size.
template <class T>
constexpr T load_element(const std::byte* from, bool aligned) {
  constexpr int bytes = sizeof(T);
  if (aligned) return std::bit_cast<T>(load<bytes>(from));
  struct Bytes {
    std::byte byte[bytes];
  } each{};
  for (int i = 0; i < bytes; ++i) each.byte[i] = from[i];
  return std::bit_cast<T>(each);
}

template <class T>
constexpr void store_element(std::byte* to, T value, bool aligned) {
  constexpr int bytes = sizeof(T);
  if (aligned) return store<bytes>(to, std::bit_cast<Granule<bytes>>(value));
  struct Bytes {
    std::byte byte[bytes];
  };
  const auto each = std::bit_cast<Bytes>(value);
  for (int i = 0; i < bytes; ++i) to[i] = each.byte[i];
}

template <class T>
constexpr void reduce_elements(const PackPlan& plan, std::int64_t tile, int thread,
                               ReduceOperation operation) {
  constexpr int bytes = sizeof(T);
  const auto all = thread_granules<bytes>(plan, tile, thread,
                                          [&](std::int64_t at) { return place_of(plan, at); });
  constexpr int each = all.each, apart = all.apart;
  const bool aligned = plan.granule >= bytes;
  T arrived[each] = {}, there[each] = {};
  for (int i = 0; i < each; ++i) {
    if (!all.has(i)) continue;
    arrived[i] = load_element<T>(all.packed + i * apart, aligned);
    there[i] = load_element<T>(plan.data + all.offset[i], aligned);
  }
  for (int i = 0; i < each; ++i)
    if (all.has(i))
      store_element(plan.data + all.offset[i], combined(operation, there[i], arrived[i]), aligned);
}

/// Elements side by side: into = from op with.
struct CombinePlan {
  std::byte* into = nullptr;
  const std::byte* from = nullptr;
  const std::byte* with = nullptr;
  std::int64_t count = 0;
};

/// What a thread has in flight at a time.
inline constexpr int combined_at_once = 4;

/// A thread's part, with its neighbours side by side, of elements of which `each` are loaded at
/// once where all three places are aligned to so many.
template <class T, int each>
constexpr void combine_granules(const CombinePlan& plan, std::int64_t thread, std::int64_t threads,
                                ReduceOperation operation) {
  constexpr int bytes = each * static_cast<int>(sizeof(T));
  struct Elements {
    T of[each];
  };
  const std::int64_t granules = plan.count / each;
  for (std::int64_t first = thread; first < granules; first += combined_at_once * threads) {
    Granule<bytes> left[combined_at_once] = {}, right[combined_at_once] = {};
    for (int i = 0; i < combined_at_once; ++i) {
      const std::int64_t at = first + i * threads;
      if (at >= granules) continue;
      left[i] = load<bytes>(plan.from + at * bytes);
      right[i] = load<bytes>(plan.with + at * bytes);
    }
    for (int i = 0; i < combined_at_once; ++i) {
      const std::int64_t at = first + i * threads;
      if (at >= granules) continue;
      auto value = std::bit_cast<Elements>(left[i]);
      const auto other = std::bit_cast<Elements>(right[i]);
      for (int k = 0; k < each; ++k) value.of[k] = combined(operation, value.of[k], other.of[k]);
      store<bytes>(plan.into + at * bytes, std::bit_cast<Granule<bytes>>(value));
    }
  }
}

/// One of so many threads, each of which takes its part.
template <class T>
constexpr void combine_elements(const CombinePlan& plan, std::int64_t thread, std::int64_t threads,
                                ReduceOperation operation) {
  constexpr int size = sizeof(T), each = 16 / size;
  const auto all = reinterpret_cast<std::uintptr_t>(plan.into) |
                   reinterpret_cast<std::uintptr_t>(plan.from) |
                   reinterpret_cast<std::uintptr_t>(plan.with);
  const bool aligned = all % size == 0;
  std::int64_t done = 0;
  if (all % 16 == 0) {
    combine_granules<T, each>(plan, thread, threads, operation);
    done = plan.count / each * each;
  }
  for (std::int64_t i = done + thread; i < plan.count; i += threads) {
    const T left = load_element<T>(plan.from + i * size, aligned);
    const T right = load_element<T>(plan.with + i * size, aligned);
    store_element(plan.into + i * size, combined(operation, left, right), aligned);
  }
}

/// Operations on truth values, which are 0 or 1, by those on bytes.
constexpr ReduceOperation on_booleans(ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::sum:
    case ReduceOperation::max:
    case ReduceOperation::lor:
    case ReduceOperation::bor:
      return ReduceOperation::lor;
    case ReduceOperation::lxor:
    case ReduceOperation::bxor:
      return ReduceOperation::lxor;
    default:
      return ReduceOperation::land;
  }
}

/// run(T{}, operation) with the type by which elements of `type` are computed.
template <class Run>
void with_element(ElementType type, ReduceOperation operation, Run run) {
  switch (type) {
    case ElementType::bytes:
    case ElementType::uint8:
      return run(std::uint8_t{}, operation);
    case ElementType::boolean:
      return run(std::uint8_t{}, on_booleans(operation));
    case ElementType::int8:
      return run(std::int8_t{}, operation);
    case ElementType::int16:
      return run(std::int16_t{}, operation);
    case ElementType::int32:
      return run(std::int32_t{}, operation);
    case ElementType::int64:
      return run(std::int64_t{}, operation);
    case ElementType::uint16:
      return run(std::uint16_t{}, operation);
    case ElementType::uint32:
      return run(std::uint32_t{}, operation);
    case ElementType::uint64:
      return run(std::uint64_t{}, operation);
    case ElementType::float16:
      return run(Float16{}, operation);
    case ElementType::bfloat16:
      return run(BFloat16{}, operation);
    case ElementType::float32:
      return run(float{}, operation);
    case ElementType::float64:
      return run(double{}, operation);
    case ElementType::complex64:
      return run(PlainComplex<float>{}, operation);
    case ElementType::complex128:
      return run(PlainComplex<double>{}, operation);
  }
}

}  // namespace quadriga::message
