// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/types.h: basic types that all other headers use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace quadriga {

/// Element types of the linear algebra; user codelets may use `bytes` for their own.
enum class DType : std::uint8_t { float32, float64, complex64, complex128, bytes };

/// Size of one element in bytes; 1 for DType::bytes.
constexpr std::size_t size_of(DType type) noexcept {
  switch (type) {
    case DType::float32:
      return 4;
    case DType::float64:
    case DType::complex64:
      return 8;
    case DType::complex128:
      return 16;
    case DType::bytes:
      return 1;
  }
  return 0;
}

std::string_view name(DType type) noexcept;

/// How a task accesses an operand.
enum class Access : std::uint8_t {
  read,
  write,    ///< Overwrites all of it; the old content isn't copied.
  update,   ///< Reads and writes.
  commute,  ///< An update, in any order among commuting tasks; one at a time.
  reduce,   ///< Adds to a partial result that is combined before the next access of another mode.
};

constexpr bool writes(Access access) noexcept { return access != Access::read; }
constexpr bool reads(Access access) noexcept {
  return access != Access::write && access != Access::reduce;
}

std::string_view name(Access access) noexcept;

/// What executes a task; a `file` only stores tiles for which the host has no memory. Kinds that a
/// backend adds have further values, which device_kind() (machine.h) finds by name.
enum class DeviceKind : std::uint8_t { cpu, emulated, cuda, file };

/// Index of a device of the engine's machine, from 0.
using DeviceId = std::uint16_t;
/// Index of a memory space: 0 is the host's; every device with memory of its own has one.
using SpaceId = std::uint16_t;
inline constexpr SpaceId host_space = 0;
inline constexpr DeviceId no_device = 0xffff;
inline constexpr SpaceId no_space = 0xffff;
/// A NUMA node of the host where it isn't known, or doesn't matter.
inline constexpr int any_node = -1;

/// Times of the engine's clock, real or virtual: integer nanoseconds since the engine's start.
using Nanoseconds = std::int64_t;
inline constexpr Nanoseconds never = INT64_MAX;

}  // namespace quadriga
