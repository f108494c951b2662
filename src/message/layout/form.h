// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/form.h: the canonical form of where a message is: nested strides around a run,
// around runs whose length changes evenly, or around a list of runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace quadriga::message {

/// Bytes that lie together, `offset` from the address that a layout is used with.
struct ByteRun {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool operator==(const ByteRun&) const = default;
};

/// `count` repetitions, `bytes` apart (which may be negative or 0).
struct Stride {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  bool operator==(const Stride&) const = default;
};

/// Runs whose length changes evenly: row i has first_bytes + i * bytes_step at i * offset_step.
struct Taper {
  std::int64_t rows = 0;
  std::int64_t offset_step = 0;
  std::int64_t first_bytes = 0;
  std::int64_t bytes_step = 0;
  bool operator==(const Taper&) const = default;
  /// Packed bytes of the first `row` rows.
  constexpr std::int64_t before(std::int64_t row) const noexcept {
    return first_bytes * row + bytes_step * (row * (row - 1) / 2);
  }
  constexpr std::int64_t length(std::int64_t row) const noexcept {
    return first_bytes + row * bytes_step;
  }
};

/// A run of a list: where it is, and where it begins among the packed bytes of the list.
struct ListedRun {
  std::int64_t offset = 0;
  std::int64_t packed = 0;
  bool operator==(const ListedRun&) const = default;
};

/// All runs of a block; the last entry only holds where the packed bytes end.
using RunList = std::vector<ListedRun>;

/// What a form repeats.
enum class Leaf : std::uint8_t { run, taper, list };

/// The bytes of a layout in packed order: block after block, the last stride's index fastest.
///
/// Canonical: equal sequences of bytes have equal forms, however they were described
/// (docs/decisions/0100-canonical-forms-of-layouts.md says why). Offsets in a leaf count from its
/// first byte, which lies `origin` from the address that the layout is used with.
struct Canonical {
  std::int64_t origin = 0;
  std::vector<Stride> strides;  ///< Outermost first; no count is 1, no two could be one.
  Leaf leaf = Leaf::run;
  std::int64_t block_bytes = 0;  ///< Packed bytes of a leaf; 0 only if all is empty.
  Taper taper;
  std::shared_ptr<const RunList> list;

  std::int64_t blocks() const noexcept;
  std::int64_t bytes() const noexcept { return block_bytes * blocks(); }
  /// Runs of a leaf.
  std::int64_t leaf_runs() const noexcept;
  /// Runs as they are stored; two that touch across a block's border count twice.
  std::int64_t runs() const noexcept { return leaf_runs() * blocks(); }
  /// The run of a leaf, its offset from the leaf's first byte.
  ByteRun run(std::int64_t index) const noexcept;
  /// The run of a leaf that holds its packed byte `packed`.
  std::int64_t run_at(std::int64_t packed) const noexcept;
  /// Least and greatest offset of a byte, the latter one past it. Those that no number holds are
  /// the end of all numbers; no form that the functions below return has such.
  std::pair<std::int64_t, std::int64_t> bounds() const noexcept;
  std::uint64_t hash() const noexcept;
  bool operator==(const Canonical& other) const noexcept;
};

/// More runs than this aren't listed: 1 GiB of them.
inline constexpr std::int64_t most_listed_runs = std::int64_t{1} << 26;

/// Strides inside each other.
inline constexpr std::size_t most_strides = 64;

Canonical run_form(std::int64_t offset, std::int64_t bytes);
/// Whether a row ends where the next one begins.
bool rows_touch(const Taper& taper) noexcept;
/// Rows of at least one byte; any offsets. Rows that touch or don't change are listed first.
Canonical taper_form(std::int64_t offset, const Taper& taper);
/// `count` times the form, `stride` bytes apart.
Canonical repeated(const Canonical& form, std::int64_t count, std::int64_t stride);
Canonical moved(Canonical form, std::int64_t by);
/// One form after the other. Forms of which several aren't empty become a list before they are
/// looked at again.
Canonical joined(const std::vector<Canonical>& forms);
/// The canonical form of runs in packed order; empty ones and touching ones are allowed.
Canonical form_of(std::vector<ByteRun> runs);

/// The runs of a form in packed order, those that touch made one.
/// Errors: too_large beyond most_listed_runs.
std::vector<ByteRun> runs_of(const Canonical& form);
/// Adds runs, joining what touches.
void append_runs(std::vector<ByteRun>& runs, const Canonical& form);

/// Whether a byte belongs to several elements.
/// Errors: too_large where strides interleave so widely that finding out takes too long.
/// Cost:   sorts the runs of those strides that interleave; nothing for disjoint ones.
bool overlaps(const Canonical& form);

/// a + b and a * b.
/// Errors: too_large if it is not below 2^62 in size.
std::int64_t checked_sum(std::int64_t a, std::int64_t b);
std::int64_t checked_product(std::int64_t a, std::int64_t b);

}  // namespace quadriga::message
