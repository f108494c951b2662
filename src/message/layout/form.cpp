// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/form.cpp: canonical forms made from forms; what they span; their runs.
#include "message/layout/form.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <limits>

#include "base/random.h"
#include "message/layout/compress.h"

namespace quadriga::message {
namespace {

constexpr std::int64_t farthest = std::int64_t{1} << 62;

// Blocks with few runs are looked at run by run: short lists can be described in several ways.
constexpr std::int64_t few_runs = 64;

std::int64_t in_range(bool overflow, std::int64_t value) {
  if (overflow || value >= farthest || value <= -farthest)
    fail(Errc::too_large, "layout: a size or an offset reaches 2^62 bytes or more");
  return value;
}

/// The sum, or the end of all numbers on its side: out of range, as every sum with that is.
std::int64_t saturated_sum(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t result = 0;
  if (!__builtin_add_overflow(a, b, &result)) return result;
  using Limits = std::numeric_limits<std::int64_t>;
  return a < 0 ? Limits::min() : Limits::max();
}

Canonical in_range(Canonical form) {
  const auto [low, high] = form.bounds();
  in_range(false, low);
  in_range(false, high);
  return form;
}

}  // namespace

std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool overflow = __builtin_add_overflow(a, b, &result);
  return in_range(overflow, result);
}

std::int64_t checked_product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &result);
  return in_range(overflow, result);
}

std::int64_t Canonical::blocks() const noexcept {
  std::int64_t product = 1;
  for (const Stride& stride : strides) product *= stride.count;
  return product;
}

std::int64_t Canonical::leaf_runs() const noexcept {
  if (leaf == Leaf::taper) return taper.rows;
  if (leaf == Leaf::list) return static_cast<std::int64_t>(list->size()) - 1;
  return block_bytes != 0;
}

ByteRun Canonical::run(std::int64_t index) const noexcept {
  if (leaf == Leaf::taper) return {index * taper.offset_step, taper.length(index)};
  if (leaf == Leaf::run) return {0, block_bytes};
  const ListedRun* at = list->data() + index;
  return {at->offset, at[1].packed - at->packed};
}

std::int64_t Canonical::run_at(std::int64_t packed) const noexcept {
  if (leaf == Leaf::run) return 0;
  std::int64_t low = 0, high = leaf_runs();
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const std::int64_t begin = leaf == Leaf::taper
                                   ? taper.before(middle)
                                   : (*list)[static_cast<std::size_t>(middle)].packed;
    (begin <= packed ? low : high) = middle;
  }
  return low;
}

std::pair<std::int64_t, std::int64_t> Canonical::bounds() const noexcept {
  if (block_bytes == 0) return {0, 0};
  std::int64_t low = 0, high = block_bytes;
  if (leaf == Leaf::taper) {
    // Both ends of a row are linear in its number, so the extremes are at the first or last row.
    const ByteRun first = run(0), last = run(taper.rows - 1);
    low = std::min(first.offset, last.offset);
    high = std::max(first.offset + first.bytes, last.offset + last.bytes);
  }
  for (std::int64_t i = 0; leaf == Leaf::list && i < leaf_runs(); ++i) {
    const ByteRun each = run(i);
    low = std::min(low, each.offset);
    high = i ? std::max(high, each.offset + each.bytes) : each.offset + each.bytes;
  }
  for (const Stride& stride : strides) {
    const std::int64_t reach = (stride.count - 1) * stride.bytes;
    std::int64_t& side = reach < 0 ? low : high;
    side = saturated_sum(side, reach);
  }
  return {saturated_sum(origin, low), saturated_sum(origin, high)};
}

std::uint64_t Canonical::hash() const noexcept {
  std::uint64_t result = static_cast<std::uint64_t>(leaf);
  const auto add = [&](std::int64_t value) {
    result = mix(result ^ static_cast<std::uint64_t>(value)) + 1;
  };
  add(origin);
  add(block_bytes);
  for (const Stride& stride : strides) {
    add(stride.count);
    add(stride.bytes);
  }
  for (const std::int64_t value :
       {taper.rows, taper.offset_step, taper.first_bytes, taper.bytes_step})
    add(value);
  if (!list) return result;
  for (const ListedRun& each : *list) {
    add(each.offset);
    add(each.packed);
  }
  return result;
}

bool Canonical::operator==(const Canonical& other) const noexcept {
  return origin == other.origin && strides == other.strides && leaf == other.leaf &&
         block_bytes == other.block_bytes && taper == other.taper &&
         (list == other.list || (list && other.list && *list == *other.list));
}

Canonical run_form(std::int64_t offset, std::int64_t bytes) {
  Canonical form;
  form.origin = bytes ? offset : 0;
  form.block_bytes = bytes;
  return form;
}

Canonical moved(Canonical form, std::int64_t by) {
  if (form.block_bytes) form.origin = checked_sum(form.origin, by);
  return form;
}

bool rows_touch(const Taper& taper) noexcept {
  const std::int64_t room = taper.offset_step - taper.first_bytes;
  if (taper.bytes_step == 0) return room == 0;
  return room % taper.bytes_step == 0 && room / taper.bytes_step >= 0 &&
         room / taper.bytes_step < taper.rows - 1;
}

Canonical taper_form(std::int64_t offset, const Taper& taper) {
  if (taper.rows < 2 || taper.bytes_step == 0 || rows_touch(taper)) {
    std::vector<ByteRun> runs;
    for (std::int64_t row = 0; row < taper.rows; ++row)
      runs.push_back({offset + row * taper.offset_step, taper.length(row)});
    return form_of(std::move(runs));
  }
  checked_product(taper.rows, std::max(taper.first_bytes, taper.length(taper.rows - 1)));
  checked_product(taper.rows, taper.offset_step);
  Canonical form;
  form.origin = offset;
  form.leaf = Leaf::taper;
  form.taper = taper;
  form.block_bytes = taper.before(taper.rows);
  return in_range(std::move(form));
}

/// Whether the next repetition would begin where these end.
bool ends_at(const Stride& repeated, std::int64_t stride) noexcept {
  std::int64_t end = 0;  // of far repetitions, of which there is but one: it may be out of range
  return !__builtin_mul_overflow(repeated.count, repeated.bytes, &end) && end == stride;
}

Canonical wrapped(Canonical form, std::int64_t count, std::int64_t stride) {
  if (form.strides.empty() && form.leaf == Leaf::run && stride == form.block_bytes) {
    form.block_bytes *= count;
  } else if (!form.strides.empty() && ends_at(form.strides.front(), stride)) {
    form.strides.front().count *= count;
  } else {
    form.strides.insert(form.strides.begin(), {count, stride});
  }
  return form;
}

Canonical repeated(const Canonical& form, std::int64_t count, std::int64_t stride) {
  if (count == 0 || form.block_bytes == 0) return {};
  if (count == 1) return form;
  checked_product(form.bytes(), count);
  checked_product(count, stride);
  if (form.leaf != Leaf::run && form.runs() <= few_runs / count) {
    std::vector<ByteRun> runs;
    for (std::int64_t i = 0; i < count; ++i) append_runs(runs, moved(form, i * stride));
    return form_of(std::move(runs));
  }
  Canonical result = wrapped(form, count, stride);
  if (result.strides.size() > most_strides)
    fail(Errc::too_large,
         fmt::format("layout: more than {} strides inside each other", most_strides));
  return in_range(std::move(result));
}

Canonical joined(const std::vector<Canonical>& forms) {
  const auto has_bytes = [](const Canonical& form) { return form.block_bytes != 0; };
  if (std::ranges::count_if(forms, has_bytes) == 1) return *std::ranges::find_if(forms, has_bytes);
  std::vector<ByteRun> runs;
  for (const Canonical& form : forms) append_runs(runs, form);
  return form_of(std::move(runs));
}

Canonical form_of(std::vector<ByteRun> runs) {
  std::vector<ByteRun> whole;
  whole.reserve(runs.size());
  for (const ByteRun& run : runs) add_run(whole, run);
  return in_range(compressed(std::move(whole)));
}

void add_run(std::vector<ByteRun>& runs, ByteRun run) {
  if (run.bytes == 0) return;
  if (!runs.empty() && runs.back().offset + runs.back().bytes == run.offset) {
    runs.back().bytes += run.bytes;
    return;
  }
  if (std::ssize(runs) >= most_listed_runs)
    fail(Errc::too_large,
         fmt::format("layout: more than {} runs that no rule describes", most_listed_runs));
  runs.push_back(run);
}

void append_runs(std::vector<ByteRun>& runs, const Canonical& form) {
  if (form.block_bytes == 0) return;
  std::vector<std::int64_t> index(form.strides.size(), 0);
  std::int64_t base = form.origin;
  const std::int64_t leaf_runs = form.leaf_runs();
  for (bool more = true; more;) {
    for (std::int64_t i = 0; i < leaf_runs; ++i) {
      const ByteRun run = form.run(i);
      add_run(runs, {base + run.offset, run.bytes});
    }
    more = false;
    for (std::size_t level = index.size(); level-- > 0 && !more;) {
      const Stride& stride = form.strides[level];
      base += stride.bytes;
      more = ++index[level] < stride.count;
      if (more) continue;
      base -= stride.count * stride.bytes;
      index[level] = 0;
    }
  }
}

std::vector<ByteRun> runs_of(const Canonical& form) {
  std::vector<ByteRun> runs;
  append_runs(runs, form);
  return runs;
}

}  // namespace quadriga::message
