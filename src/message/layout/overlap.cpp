// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/overlap.cpp: whether a form has a byte twice.
//
// Strides sorted by size: one that steps over all that smaller ones reach can't make bytes meet,
// nor can those above it. What is left below, where strides interleave, is listed and sorted.
#include <quadriga/error.h>

#include <algorithm>
#include <cstdlib>

#include "message/layout/form.h"

namespace quadriga::message {
namespace {

bool any_meet(std::vector<ByteRun> runs) {
  std::ranges::sort(runs, {}, &ByteRun::offset);
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].offset < runs[i - 1].offset + runs[i - 1].bytes) return true;
  }
  return false;
}

// Rows in the order of their starts: each must end before the next one begins.
bool rows_meet(const Taper& taper) {
  const std::int64_t step = std::abs(taper.offset_step);
  const std::int64_t first = taper.offset_step < 0 ? 1 : 0;
  const std::int64_t last = taper.rows - 2 + first;
  return std::max(taper.length(first), taper.length(last)) > step;
}

bool leaf_meets(const Canonical& form) {
  if (form.leaf == Leaf::taper) return rows_meet(form.taper);
  if (form.leaf == Leaf::run) return false;
  Canonical leaf = form;
  leaf.strides.clear();
  return any_meet(runs_of(leaf));
}

// Strides up to the last one that doesn't step over what smaller ones and the leaf reach.
std::vector<Stride> interleaved(const Canonical& form) {
  Canonical leaf = form;
  leaf.strides.clear();
  const auto [low, high] = leaf.bounds();
  std::int64_t reach = high - low;
  std::vector<Stride> sorted = form.strides;
  std::ranges::sort(sorted, {}, [](const Stride& each) { return std::abs(each.bytes); });
  std::size_t last = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (std::abs(sorted[i].bytes) < reach) last = i + 1;
    reach += (sorted[i].count - 1) * std::abs(sorted[i].bytes);
  }
  sorted.resize(last);
  return sorted;
}

}  // namespace

bool overlaps(const Canonical& form) {
  if (form.block_bytes == 0) return false;
  for (const Stride& stride : form.strides) {
    if (stride.bytes == 0) return true;
  }
  Canonical rest = form;
  rest.strides = interleaved(form);
  if (rest.strides.empty()) return leaf_meets(form);
  const auto [low, high] = rest.bounds();
  if (rest.bytes() > high - low) return true;
  if (rest.runs() > most_listed_runs)
    fail(Errc::too_large,
         "layout: its strides interleave so widely that it can't be told whether elements overlap");
  return any_meet(runs_of(rest));
}

}  // namespace quadriga::message
