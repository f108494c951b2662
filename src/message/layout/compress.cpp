// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/compress.cpp: strides, even changes and repetitions in a list of runs.
#include "message/layout/compress.h"

#include <algorithm>
#include <optional>

namespace quadriga::message {
namespace {

// Starts of units as long as the first run. Inside a block of nested strides units don't touch, so
// a run holds at most the last unit of one block and the first of the next.
std::vector<std::int64_t> unit_starts(const std::vector<ByteRun>& runs) {
  const std::int64_t unit = runs.front().bytes;
  std::vector<std::int64_t> starts;
  for (const ByteRun& run : runs) {
    if (run.bytes != unit && run.bytes != 2 * unit) return {};
    starts.push_back(run.offset);
    if (run.bytes == 2 * unit) starts.push_back(run.offset + unit);
  }
  return starts;
}

// How many starts from the first on are the same step apart.
std::size_t even_prefix(const std::vector<std::int64_t>& starts) {
  std::size_t length = 2;
  while (length < starts.size() && starts[length] - starts[length - 1] == starts[1] - starts[0])
    ++length;
  return length;
}

// Replaces blocks of evenly spaced starts by their first ones; false if not all are like the first.
bool fold(std::vector<std::int64_t>& starts, std::size_t length) {
  if (starts.size() % length) return false;
  const std::int64_t step = starts[1] - starts[0];
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (i % length && starts[i] - starts[i - 1] != step) return false;
  }
  for (std::size_t block = 0; block < starts.size() / length; ++block)
    starts[block] = starts[block * length];
  starts.resize(starts.size() / length);
  return true;
}

// A block of nested strides ends where the even spacing from its first run on does, so each level
// follows from the runs alone.
std::optional<Canonical> as_strides(const std::vector<ByteRun>& runs) {
  std::vector<std::int64_t> starts = unit_starts(runs);
  if (starts.empty()) return {};
  Canonical form = run_form(runs.front().offset, runs.front().bytes);
  while (starts.size() > 1) {
    const std::size_t length = even_prefix(starts);
    const std::int64_t step = starts[1] - starts[0];
    if (!fold(starts, length)) return {};
    form.strides.insert(form.strides.begin(), {static_cast<std::int64_t>(length), step});
  }
  return form;
}

std::optional<Canonical> as_taper(const std::vector<ByteRun>& runs) {
  if (runs.size() < 2) return {};
  const Taper taper{std::ssize(runs), runs[1].offset - runs[0].offset, runs[0].bytes,
                    runs[1].bytes - runs[0].bytes};
  if (taper.bytes_step == 0) return {};
  for (std::size_t i = 2; i < runs.size(); ++i) {
    if (runs[i].offset - runs[i - 1].offset != taper.offset_step ||
        runs[i].bytes - runs[i - 1].bytes != taper.bytes_step)
      return {};
  }
  return taper_form(runs.front().offset, taper);
}

// The distances after which runs i to i + distance, for all i, have the same length and the same
// way to the next run, from the least on. Source: Knuth, Morris and Pratt's failure function.
std::vector<std::size_t> periods(const std::vector<ByteRun>& runs) {
  const std::size_t steps = runs.size() - 1;
  const auto same = [&](std::size_t a, std::size_t b) {
    return runs[a].bytes == runs[b].bytes &&
           runs[a + 1].offset - runs[a].offset == runs[b + 1].offset - runs[b].offset;
  };
  std::vector<std::uint32_t> border(steps + 1, 0);
  for (std::size_t i = 1, matched = 0; i < steps; ++i) {
    while (matched && !same(i, matched)) matched = border[matched];
    matched += same(i, matched);
    border[i + 1] = static_cast<std::uint32_t>(matched);
  }
  std::vector<std::size_t> found;
  for (std::size_t length = steps; length; length = border[length])
    found.push_back(steps - border[length]);
  return found;
}

// Blocks of `period` runs, none of which touches the next.
std::optional<Canonical> as_blocks(const std::vector<ByteRun>& runs) {
  const std::size_t count = runs.size();
  for (const std::size_t period : periods(runs)) {
    if (period == count || count % period || runs.back().bytes != runs[count - 1 - period].bytes)
      continue;
    const std::int64_t stride = runs[period].offset - runs[0].offset;
    const std::vector<ByteRun> block(runs.begin(),
                                     runs.begin() + static_cast<std::ptrdiff_t>(period));
    return wrapped(compressed(block), static_cast<std::int64_t>(count / period), stride);
  }
  return {};
}

// Blocks of which each touches the next: their borders lie within runs. With the last run put
// before the first one, all runs but that are those of blocks without their last runs.
std::optional<Canonical> as_touching_blocks(const std::vector<ByteRun>& runs) {
  const std::size_t count = runs.size() - 1;
  if (count < 2) return {};
  const ByteRun last = runs.back();
  std::vector<ByteRun> turned(runs.begin(), runs.end() - 1);
  turned.front().offset -= last.bytes;
  turned.front().bytes += last.bytes;
  for (const std::size_t period : periods(turned)) {
    if (period == count || count % period ||
        turned.back().bytes != turned[count - 1 - period].bytes)
      continue;
    const std::int64_t stride = turned[period].offset - turned[0].offset;
    const auto blocks = static_cast<std::int64_t>(count / period);
    if (last.offset != turned[period].offset + (blocks - 1) * stride) continue;
    std::vector<ByteRun> block(runs.begin(),
                               runs.begin() + static_cast<std::ptrdiff_t>(period) + 1);
    block.back().bytes = last.bytes;
    return wrapped(compressed(std::move(block)), blocks, stride);
  }
  return {};
}

Canonical as_list(const std::vector<ByteRun>& runs) {
  RunList list;
  list.reserve(runs.size() + 1);
  std::int64_t packed = 0;
  const std::int64_t origin = runs.front().offset;
  for (const ByteRun& run : runs) {
    list.push_back({run.offset - origin, packed});
    packed = checked_sum(packed, run.bytes);
  }
  list.push_back({0, packed});
  Canonical form;
  form.origin = origin;
  form.leaf = Leaf::list;
  form.block_bytes = packed;
  form.list = std::make_shared<const RunList>(std::move(list));
  return form;
}

}  // namespace

Canonical compressed(std::vector<ByteRun> runs) {
  if (runs.empty()) return {};
  if (auto form = as_strides(runs)) return *form;
  if (auto form = as_taper(runs)) return *form;
  if (auto form = as_blocks(runs)) return *form;
  if (auto form = as_touching_blocks(runs)) return *form;
  return as_list(runs);
}

}  // namespace quadriga::message
