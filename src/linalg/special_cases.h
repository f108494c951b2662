// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/special_cases.h: parts of the planner that serve some problems only, by name.
//
// Each must earn its place: `quadriga-bench plans --without NAME` tells how fast the plans are that
// lack one. A new one is a value here, a name in special_cases.cpp, and one uses() where it begins.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace quadriga::linalg {

enum class SpecialCase : std::uint8_t {
  lists,             ///< Products that fit: list schedules of tiles of any shape.
  pieces,            ///< Of those, smaller tiles where devices begin and end.
  eager,             ///< Of those, several weights of A's columns.
  product_trials,    ///< Products whose plans seem alike are tried.
  panels,            ///< Products that don't fit: tiles of any shape, rows of A stay.
  square_panels,     ///< Squares beside those.
  growing,           ///< A box grows while the first tiles arrive.
  tile_trials,       ///< Factorizations: tiles that seem alike are tried.
  larger_tiles,      ///< Of those, larger ones whose trials take little.
  places,            ///< Owners in another order are tried.
  pulls,             ///< Tasks without owners are tried.
  symmetric_owners,  ///< Owners by classes of rows, not by a grid.
  row_by_row,        ///< One device that holds all proceeds by rows.
};

/// The names, in the order of the values: "pieces", "square-panels".
std::span<const std::string_view> special_case_names() noexcept;

/// Whether plans use it: yes, unless it is left out. Any thread.
bool uses(SpecialCase each) noexcept;
/// Bits of those that are left out, by value: part of what remembered plans are found by.
std::uint32_t special_cases_left_out() noexcept;

/// Leaves one out as long as it lives, one at a time, while no other thread plans.
/// Errors: invalid_argument listing the names.
class WithoutSpecialCase {
 public:
  explicit WithoutSpecialCase(std::string_view name);
  ~WithoutSpecialCase();
  WithoutSpecialCase(const WithoutSpecialCase&) = delete;
  WithoutSpecialCase& operator=(const WithoutSpecialCase&) = delete;
};

}  // namespace quadriga::linalg
