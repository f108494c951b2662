// SPDX-License-Identifier: BSD-3-Clause
// src/graph/subgraph.cpp: edges from the order of accesses to parts of operands.
#include "graph/subgraph.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {
namespace {

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

void Subgraph::refuse(const Codelet& codelet, const std::string& why) const {
  fail(Errc::invalid_argument, fmt::format("division of '{}': fine task {} ('{}') {}", name_,
                                           tasks_.size(), codelet.name, why));
}

void Subgraph::check(const Codelet& codelet, std::span<const View> operands,
                     std::span<const std::byte> params) const {
  if (!codelet.cpu) refuse(codelet, "has no cpu variant, which cores need");
  if (codelet.submits || codelet.blocks || codelet.detaches)
    refuse(codelet, "submits, blocks or detaches; expected a variant that computes and returns");
  if (codelet.workspace && codelet.workspace({operands, params}, DeviceKind::cpu) > 0)
    refuse(codelet, "needs a workspace on cores, which fine tasks don't have");
  if (operands.size() != codelet.access.size())
    refuse(codelet, fmt::format("has {} operands; its codelet accesses {}", operands.size(),
                                codelet.access.size()));
}

std::size_t Subgraph::slot_of(std::uintptr_t address) const noexcept {
  constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
  return static_cast<std::size_t>(address * spread >> 32) & (table_.size() - 1);
}

void Subgraph::push(std::uint32_t& list, std::uint32_t number) {
  links_.push_back({number, list});
  list = static_cast<std::uint32_t>(links_.size() - 1);
}

void Subgraph::grow_table() {
  constexpr std::size_t least = 64;
  table_.assign(std::max(least, 2 * table_.size()), none);
  for (std::uint32_t at = 0; at < places_.size(); ++at) {
    std::uint32_t& slot = table_[slot_of(places_[at].region.first)];
    places_[at].next_of_slot = slot;
    slot = at;
  }
}

std::uint32_t Subgraph::add_place(const Region& region, DType dtype, bool may_write) {
  if (2 * (places_.size() + 1) > table_.size()) grow_table();
  const auto made = static_cast<std::uint32_t>(places_.size());
  std::uint32_t& slot = table_[slot_of(region.first)];
  Place place{region, dtype, may_write, slot};
  const Extent extent{region.first, region.first + region.span()};
  for (std::uint32_t other = 0; other < made; ++other) {
    if (extents_[other].end <= extent.begin || extent.end <= extents_[other].begin) continue;
    if (!overlap(places_[other].region, region)) continue;
    push(place.overlaps, other);
    push(places_[other].overlaps, made);
  }
  places_.push_back(place);
  extents_.push_back(extent);
  slot = made;
  return made;
}

std::uint32_t Subgraph::place_of(const Codelet& codelet, std::span<const View> operands,
                                 std::size_t index) {
  const View& view = operands[index];
  const Region region = region_of(view);
  std::uint32_t at = table_.empty() ? none : table_[slot_of(region.first)];
  while (at != none && !(places_[at].dtype == view.dtype && same(places_[at].region, region)))
    at = places_[at].next_of_slot;
  const bool is_known = at != none;
  bool is_within = is_known;
  bool may_write = is_known && places_[at].may_write;
  for (std::size_t k = 0; !is_known && k < operands_.size(); ++k) {
    if (!is_part(view, operands_[k])) continue;
    is_within = true;
    may_write = may_write || writes(access_[k]);
  }
  if (!is_within)
    refuse(codelet,
           fmt::format("has an operand {} that isn't part of the divided task's operands", index));
  if (writes(codelet.access[index]) && !may_write)
    refuse(codelet, fmt::format("writes operand {}, which the divided task only reads", index));
  return is_known ? at : add_place(region, view.dtype, may_write);
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
  for (std::uint32_t link = place.readers; link != none; link = links_[link].next)
    add_edge(links_[link].number);
}

void Subgraph::add(const Codelet& codelet, std::span<const View> operands,
                   std::span<const std::byte> params) {
  check(codelet, operands, params);
  at_.clear();
  for (std::size_t i = 0; i < operands.size(); ++i)
    at_.push_back(is_empty(operands[i]) ? none : place_of(codelet, operands, i));
  const auto number = static_cast<std::uint32_t>(tasks_.size());
  tasks_.push_back({&codelet, static_cast<std::uint32_t>(views_.size()),
                    static_cast<std::uint32_t>(params_.size()),
                    static_cast<std::uint32_t>(params.size())});
  views_.insert(views_.end(), operands.begin(), operands.end());
  params_.insert(params_.end(), params.begin(), params.end());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (at_[i] == none) continue;
    Place& place = places_[at_[i]];
    const bool written = writes(codelet.access[i]);
    follow(place, written);
    for (std::uint32_t link = place.overlaps; link != none; link = links_[link].next)
      follow(places_[links_[link].number], written);
    // Its own accesses add no edge, and later ones follow both.
    if (!written) {
      push(place.readers, number);
    } else {
      place.writer = number;
      place.readers = none;
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
