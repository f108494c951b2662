// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/element.cpp: types of elements, and polynomials of their sequences.
#include "message/layout/element.h"

#include <array>

namespace quadriga::message {
namespace {

struct Known {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<Known, element_types> known{{{"bytes", 1},
                                                  {"boolean", 1},
                                                  {"int8", 1},
                                                  {"int16", 2},
                                                  {"int32", 4},
                                                  {"int64", 8},
                                                  {"uint8", 1},
                                                  {"uint16", 2},
                                                  {"uint32", 4},
                                                  {"uint64", 8},
                                                  {"float16", 2},
                                                  {"bfloat16", 2},
                                                  {"float32", 4},
                                                  {"float64", 8},
                                                  {"complex64", 8},
                                                  {"complex128", 16}}};

constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t base = 0x0a3b1d96e7c58f43;

std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept { return (a + b) % prime; }

std::uint64_t product(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % prime);
}

std::uint64_t power(std::uint64_t exponent) noexcept {
  std::uint64_t result = 1, square = base;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = product(result, square);
    square = product(square, square);
  }
  return result;
}

}  // namespace

std::size_t size_of(ElementType type) noexcept { return known[static_cast<int>(type)].bytes; }

std::string_view name(ElementType type) noexcept { return known[static_cast<int>(type)].name; }

ElementSignature::ElementSignature(ElementType type) noexcept
    : ElementSignature(1, static_cast<std::uint64_t>(type) + 1, true, type) {}

ElementSignature::ElementSignature(std::uint64_t count, std::uint64_t hash, bool uniform,
                                   ElementType type) noexcept
    : count_(count),
      hash_(hash),
      period_(uniform ? 1 : count),
      period_hash_(uniform ? static_cast<std::uint64_t>(type) + 1 : hash),
      uniform_(uniform),
      type_(type) {}

ElementSignature ElementSignature::followed_by(const ElementSignature& other) const noexcept {
  if (!count_) return other;
  if (!other.count_) return *this;
  const bool alike = uniform_ && other.uniform_ && type_ == other.type_;
  ElementSignature joined{count_ + other.count_, sum(hash_, product(power(count_), other.hash_)),
                          alike, type_};
  if (period_ == other.period_ && period_hash_ == other.period_hash_) {
    joined.period_ = period_;
    joined.period_hash_ = period_hash_;
  }
  return joined;
}

bool ElementSignature::begins_with(const ElementSignature& other) const noexcept {
  if (*this == other || other.count_ == 0) return true;
  if (other.count_ > count_ || other.count_ % period_ != 0) return false;
  return period().repeated(other.count_ / period_) == other;
}

ElementSignature ElementSignature::repeated(std::uint64_t times) const noexcept {
  ElementSignature result, doubled = *this;
  for (; times; times >>= 1) {
    if (times & 1) result = result.followed_by(doubled);
    doubled = doubled.followed_by(doubled);
  }
  return result;
}

std::string ElementSignature::text() const {
  const std::string count = std::to_string(count_);
  return uniform_ ? count + " " + std::string(name(type_)) : count + " of several types";
}

}  // namespace quadriga::message
