// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/special_cases.cpp: names of the planner's special cases, and which one is left out.
#include "linalg/special_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <quadriga/error.h>

#include <algorithm>
#include <atomic>
#include <iterator>

namespace quadriga::linalg {
namespace {

/// In the order of the values.
constexpr std::string_view case_names[] = {
    "lists",         "pieces",           "eager",       "product-trials", "panels",
    "square-panels", "growing",          "tile-trials", "larger-tiles",   "places",
    "pulls",         "symmetric-owners", "row-by-row"};
static_assert(std::size(case_names) == static_cast<std::size_t>(SpecialCase::row_by_row) + 1);

std::atomic<std::uint32_t> left_out{0};

}  // namespace

std::span<const std::string_view> special_case_names() noexcept { return case_names; }

bool uses(SpecialCase each) noexcept {
  return (special_cases_left_out() >> static_cast<unsigned>(each) & 1) == 0;
}

std::uint32_t special_cases_left_out() noexcept { return left_out.load(std::memory_order_relaxed); }

WithoutSpecialCase::WithoutSpecialCase(std::string_view name) {
  const auto found = std::ranges::find(case_names, name);
  require(found != std::end(case_names), fmt::format("no special case '{}'; expected one of {}",
                                                     name, fmt::join(case_names, ", ")));
  left_out = std::uint32_t{1} << (found - std::begin(case_names));
}

WithoutSpecialCase::~WithoutSpecialCase() { left_out = 0; }

}  // namespace quadriga::linalg
