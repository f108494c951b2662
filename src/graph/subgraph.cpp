// SPDX-License-Identifier: BSD-3-Clause
// src/graph/subgraph.cpp: edges from the order of accesses to parts of operands.
#include "graph/subgraph.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {
namespace {

Region region_of_view(const View& view) noexcept {
  const std::size_t element = size_of(view.dtype);
  return {reinterpret_cast<std::uintptr_t>(view.data),
          static_cast<std::size_t>(view.rows) * element, static_cast<std::size_t>(view.cols),
          static_cast<std::size_t>(view.ld) * element};
}

bool same(const Region& a, const Region& b) noexcept {
  return a.first == b.first && a.width == b.width && a.columns == b.columns && a.pitch == b.pitch;
}

bool is_part(const View& part, const View& whole) noexcept {
  if (part.dtype != whole.dtype || (part.ld != whole.ld && part.cols > 1)) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(whole.data);
  const auto address = reinterpret_cast<std::uintptr_t>(part.data);
  const std::size_t element = size_of(whole.dtype);
  if (address < first || (address - first) % element != 0 || whole.ld <= 0) return false;
  const auto offset = static_cast<std::int64_t>((address - first) / element);
  return offset % whole.ld + part.rows <= whole.rows && offset / whole.ld + part.cols <= whole.cols;
}

bool is_empty(const View& view) noexcept { return view.rows == 0 || view.cols == 0; }

}  // namespace

View part_of(const View& view, std::int64_t row, std::int64_t col, std::int64_t rows,
             std::int64_t cols) {
  if (row < 0 || col < 0 || rows < 0 || cols < 0 || rows > view.rows - row ||
      cols > view.cols - col)
    fail(Errc::invalid_argument,
         fmt::format("a part of {} x {} elements from ({}, {}) on isn't within a view of {} x {}",
                     rows, cols, row, col, view.rows, view.cols));
  auto* const first = static_cast<std::byte*>(view.data);
  const auto offset = static_cast<std::size_t>(row + col * view.ld) * size_of(view.dtype);
  return {first == nullptr ? nullptr : first + offset, rows, cols, view.ld, view.dtype};
}

void Division::add(const Codelet& codelet, std::span<const View> operands,
                   std::span<const std::byte> params) {
  graph_.add(codelet, operands, params);
}

void Subgraph::check(const Codelet& codelet, std::span<const View> operands) const {
  const auto refuse = [&](const std::string& why) {
    fail(Errc::invalid_argument, fmt::format("division of '{}': fine task {} ('{}') {}", name_,
                                             tasks_.size(), codelet.name, why));
  };
  if (!codelet.cpu) refuse("has no cpu variant, which cores need");
  if (codelet.submits || codelet.blocks || codelet.detaches)
    refuse("submits, blocks or detaches; expected a variant that computes and returns");
  if (operands.size() != codelet.access.size())
    refuse(fmt::format("has {} operands; its codelet accesses {}", operands.size(),
                       codelet.access.size()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (is_empty(operands[i])) continue;
    bool is_within = false;
    bool may_write = false;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      if (!is_part(operands[i], operands_[k])) continue;
      is_within = true;
      may_write = may_write || writes(access_[k]);
    }
    if (!is_within)
      refuse(fmt::format("has an operand {} that isn't part of the divided task's operands", i));
    if (writes(codelet.access[i]) && !may_write)
      refuse(fmt::format("writes operand {}, which the divided task only reads", i));
  }
}

std::uint32_t Subgraph::place_of(const View& view) {
  const Region region = region_of_view(view);
  const auto [begin, end] = by_address_.equal_range(region.first);
  for (auto it = begin; it != end; ++it)
    if (same(places_[it->second].region, region)) return it->second;
  const auto made = static_cast<std::uint32_t>(places_.size());
  Place place{region};
  for (std::uint32_t other = 0; other < made; ++other)
    if (overlap(places_[other].region, region)) {
      place.overlaps.push_back(other);
      places_[other].overlaps.push_back(made);
    }
  places_.push_back(std::move(place));
  by_address_.emplace(region.first, made);
  return made;
}

void Subgraph::add_edge(std::uint32_t from) {
  const auto to = static_cast<std::uint32_t>(tasks_.size() - 1);
  // Edges to the newest task stand first in each list.
  const std::uint32_t first = tasks_[from].first_edge;
  if (from == to || (first != none && edges_[first].to == to)) return;
  tasks_[from].first_edge = static_cast<std::uint32_t>(edges_.size());
  edges_.push_back({to, first});
  ++tasks_[to].predecessors;
}

void Subgraph::follow(const Place& place, bool written) {
  if (place.writer != none) add_edge(place.writer);
  if (!written) return;
  for (const std::uint32_t reader : place.readers) add_edge(reader);
}

void Subgraph::add(const Codelet& codelet, std::span<const View> operands,
                   std::span<const std::byte> params) {
  check(codelet, operands);
  const auto number = static_cast<std::uint32_t>(tasks_.size());
  tasks_.push_back({&codelet, static_cast<std::uint32_t>(views_.size()),
                    static_cast<std::uint32_t>(params_.size()),
                    static_cast<std::uint32_t>(params.size())});
  views_.insert(views_.end(), operands.begin(), operands.end());
  params_.insert(params_.end(), params.begin(), params.end());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (is_empty(operands[i])) continue;
    const bool written = writes(codelet.access[i]);
    const std::uint32_t at = place_of(operands[i]);
    follow(places_[at], written);
    for (const std::uint32_t other : places_[at].overlaps) follow(places_[other], written);
    // Its own accesses add no edge, and later ones follow both.
    if (!written) {
      places_[at].readers.push_back(number);
    } else {
      places_[at].writer = number;
      places_[at].readers.clear();
    }
  }
}

Arguments Subgraph::arguments(std::size_t task) const noexcept {
  const FineTask& fine = tasks_[task];
  return {{views_.data() + fine.first_view, fine.codelet->access.size()},
          {params_.data() + fine.first_param, fine.params},
          nullptr};
}

}  // namespace quadriga
