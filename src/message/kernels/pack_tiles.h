// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/pack_tiles.h: what one thread does for one tile of a part. Kernels run it on
// a device, tests on the host, so that both compute the same places.
//
// A lane's granules are a warp's width apart, so that a warp reads and writes side by side.
#pragma once

#include <type_traits>

#include "message/pack/device_plan.h"

namespace quadriga::message {

/// `bytes` that are loaded and stored at once, whatever type the memory's elements have.
template <int bytes>
struct __attribute__((may_alias, aligned(bytes))) Granule {
  using Word = std::conditional_t<bytes == 1, std::uint8_t,
                                  std::conditional_t<bytes == 2, std::uint16_t, std::uint32_t>>;
  Word word[bytes <= 4 ? 1 : bytes / 4];
};

/// At an aligned address.
template <int bytes>
constexpr Granule<bytes> load(const std::byte* from) {
  return *reinterpret_cast<const Granule<bytes>*>(from);
}
template <int bytes>
constexpr void store(std::byte* to, const Granule<bytes>& value) {
  *reinterpret_cast<Granule<bytes>*>(to) = value;
}

/// The place among the granules of a tile where a thread begins.
constexpr std::int64_t first_granule(std::int64_t tile, int thread, int each) noexcept {
  constexpr int warps = tile_threads / warp_threads;
  return (tile * warps + thread / warp_threads) * (each * warp_threads) + thread % warp_threads;
}

/// A thread's granules: how many there are from its first one on, and where they are.
template <int bytes>
struct ThreadGranules {
  static constexpr int each = granules_a_thread(bytes);
  static constexpr int apart = warp_threads * bytes;
  std::int64_t left = 0;  ///< Granules from the first one to the part's end.
  std::byte* packed = nullptr;
  std::int64_t offset[each] = {};

  constexpr bool has(int i) const { return i * warp_threads < left; }
};

/// `place_at` says where a byte of the stream is.
template <int bytes, class PlaceOf>
constexpr ThreadGranules<bytes> thread_granules(const PackPlan& plan, std::int64_t tile, int thread,
                                                PlaceOf place_at) {
  ThreadGranules<bytes> result;
  constexpr int each = result.each, apart = result.apart;
  const std::int64_t first = first_granule(tile, thread, each);
  result.left = (plan.end - plan.begin) / bytes - first;
  if (result.left <= 0) return result;
  const std::int64_t at = plan.begin + first * bytes;
  result.packed = plan.packed + first * bytes;
  const BytePlace place = place_at(at);
  result.offset[0] = place.offset;
  if (place.left > (each - 1) * apart) {
    for (int i = 1; i < each; ++i) result.offset[i] = place.offset + i * apart;
  } else {
    for (int i = 1; i < each; ++i)
      result.offset[i] = result.has(i) ? place_at(at + i * apart).offset : 0;
  }
  return result;
}

template <bool packs, int bytes, PlanLeaf leaf>
constexpr void move_granules(const PackPlan& plan, std::int64_t tile, int thread) {
  const auto all = thread_granules<bytes>(
      plan, tile, thread, [&](std::int64_t at) { return place_of<leaf>(plan, at); });
  constexpr int each = all.each, apart = all.apart;
  Granule<bytes> value[each] = {};
  for (int i = 0; i < each; ++i)
    if (all.has(i))
      value[i] = load<bytes>(packs ? plan.data + all.offset[i] : all.packed + i * apart);
  for (int i = 0; i < each; ++i)
    if (all.has(i))
      store<bytes>(packs ? all.packed + i * apart : plan.data + all.offset[i], value[i]);
}

/// From where the one plan's bytes are to where the other's are.
template <int bytes, PlanLeaf from_leaf, PlanLeaf to_leaf>
constexpr void move_between(const MovePlan& plan, std::int64_t tile, int thread) {
  const auto from = thread_granules<bytes>(
      plan.from, tile, thread, [&](std::int64_t at) { return place_of<from_leaf>(plan.from, at); });
  const auto to = thread_granules<bytes>(
      plan.to, tile, thread, [&](std::int64_t at) { return place_of<to_leaf>(plan.to, at); });
  constexpr int each = to.each;
  Granule<bytes> value[each] = {};
  for (int i = 0; i < each; ++i)
    if (from.has(i)) value[i] = load<bytes>(plan.from.data + from.offset[i]);
  for (int i = 0; i < each; ++i)
    if (to.has(i)) store<bytes>(plan.to.data + to.offset[i], value[i]);
}

/// 16 bytes at any address: the words that hold them, put together when they have arrived.
/// What is read beyond them shares an aligned word of 8 bytes with them.
struct OddWindow {
  static constexpr int bytes = 16;
  std::uint64_t word[3] = {};
  int shift = 0;

  constexpr void load(const std::byte* from) {
    using Word = std::uint64_t __attribute__((may_alias));
    const auto odd = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) & 7);
    const Word* const words = reinterpret_cast<const Word*>(from - odd);
    shift = 8 * odd;
    word[0] = words[0];
    word[1] = words[1];
    if (odd != 0) word[2] = words[2];
  }
  constexpr void store(std::byte* to) const {
    const std::uint64_t low = shift == 0 ? word[0] : (word[0] >> shift) | (word[1] << (64 - shift));
    const std::uint64_t high =
        shift == 0 ? word[1] : (word[1] >> shift) | (word[2] << (64 - shift));
    message::store<16>(
        to, {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
              static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)}});
  }
};

/// Bytes of one run, 16 at a time where they are written to an aligned address.
template <bool packs>
constexpr void move_window(const PackPlan& plan, std::int64_t at, std::int64_t end,
                           std::byte* in_data) {
  std::byte* in_packed = plan.packed + (at - plan.begin);
  std::byte* to = packs ? in_packed : in_data;
  const std::byte* from = packs ? in_data : in_packed;
  if (end - at == OddWindow::bytes) {
    OddWindow window;
    window.load(from);
    window.store(to);
    return;
  }
  for (std::int64_t i = 0; i < end - at; ++i) to[i] = from[i];
}

constexpr std::int64_t to_next_window(const std::byte* address) noexcept {
  return static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(address) &
                                   (OddWindow::bytes - 1));
}

/// The windows that begin within packed bytes `at` to `at + 16`: a run's first one begins with it.
template <bool packs>
constexpr void move_piece(const PackPlan& plan, std::int64_t at) {
  const std::int64_t end = at + OddWindow::bytes < plan.end ? at + OddWindow::bytes : plan.end;
  while (at < end) {
    const BytePlace place = place_of(plan, at);
    std::byte* const in_data = plan.data + place.offset;
    const std::byte* const to = packs ? plan.packed + (at - plan.begin) : in_data;
    const std::int64_t run_end = at + place.left < plan.end ? at + place.left : plan.end;
    const std::int64_t piece_end = run_end < end ? run_end : end;
    const bool begins = place.passed == 0 || at == plan.begin;
    std::int64_t window = begins ? at : at + to_next_window(to);
    while (window < piece_end) {
      const std::int64_t odd = to_next_window(to + (window - at));
      const std::int64_t whole = odd == 0 ? OddWindow::bytes : odd;
      const std::int64_t stop = window + whole < run_end ? window + whole : run_end;
      move_window<packs>(plan, window, stop, in_data + (window - at));
      window = stop;
    }
    at = piece_end;
  }
}

template <bool packs>
constexpr void move_windows(const PackPlan& plan, std::int64_t tile, int thread) {
  constexpr int each = granules_a_thread(OddWindow::bytes), apart = warp_threads * OddWindow::bytes;
  const std::int64_t first = first_granule(tile, thread, each);
  const std::int64_t at = plan.begin + first * OddWindow::bytes;
  if (at >= plan.end) return;
  const BytePlace place = place_of(plan, at);
  std::byte* const in_data = plan.data + place.offset;
  std::byte* const in_packed = plan.packed + (at - plan.begin);
  const std::int64_t skipped = to_next_window(packs ? in_packed : in_data);
  const bool begins = place.passed == 0 || at == plan.begin;
  // All windows whole, in one run, and none shorter at its begin.
  const std::int64_t reach = skipped + (each - 1) * apart + OddWindow::bytes;
  if (reach <= place.left && reach <= plan.end - at && (skipped == 0 || !begins)) {
    OddWindow window[each];
    for (int i = 0; i < each; ++i)
      window[i].load((packs ? in_data : in_packed) + skipped + i * apart);
    for (int i = 0; i < each; ++i)
      window[i].store((packs ? in_packed : in_data) + skipped + i * apart);
    return;
  }
  for (int i = 0; i < each; ++i)
    if (at + i * apart < plan.end) move_piece<packs>(plan, at + i * apart);
}

/// A square of a transpose: elements with index i of the level along and k of that across.
struct TransposeTile {
  std::int64_t offset = 0;  ///< Of its first element, from data.
  std::int64_t packed = 0;  ///< Of the stream.
  std::int64_t along = 0;   ///< Elements of its sides.
  std::int64_t across = 0;
};

template <int bytes>
constexpr TransposeTile transpose_tile(const PackPlan& plan, std::int64_t tile) {
  constexpr std::int64_t edge = transpose_edge(bytes);
  const TransposePlan& transpose = plan.transpose;
  const PlanLevel &along = plan.level[0], &across = plan.level[transpose.across];
  const std::int64_t row = transpose.tiles_along.quotient(tile);
  const std::int64_t i = (tile - row * transpose.tiles_along.divisor) * edge;
  std::int64_t batch = transpose.tiles_across.quotient(row);
  const std::int64_t k =
      (row - batch * transpose.tiles_across.divisor + transpose.first_tile_across) * edge;
  batch += transpose.first_batch;
  TransposeTile result;
  result.offset = plan.origin + i * along.bytes + k * across.bytes;
  result.packed = i * bytes + k * transpose.pitch;
  result.along = along.count.divisor - i < edge ? along.count.divisor - i : edge;
  result.across = across.count.divisor - k < edge ? across.count.divisor - k : edge;
  std::int64_t pitch = bytes * along.count.divisor;
  for (int level = 1; level < plan.levels; ++level) {
    const PlanLevel& each = plan.level[level];
    if (level != transpose.across) {
      const std::int64_t outer = each.count.quotient(batch);
      const std::int64_t index = batch - outer * each.count.divisor;
      result.offset += index * each.bytes;
      result.packed += index * pitch;
      batch = outer;
    }
    pitch *= each.count.divisor;
  }
  return result;
}

/// A square in shared memory, with a column more, so that both ways of walking use all banks.
template <int bytes>
struct TransposeSquare {
  static constexpr int edge = transpose_edge(bytes);
  Granule<bytes> element[edge][edge + 1];
};

/// One half of moving a tile: `by_memory` between data and the square, else between the square
/// and packed bytes. A barrier separates the halves; packing begins with memory, unpacking ends
/// with it.
template <bool packs, bool by_memory, int bytes>
constexpr void move_square(const PackPlan& plan, const TransposeTile& tile,
                           TransposeSquare<bytes>& square, int thread) {
  constexpr int edge = transpose_edge(bytes), rows = tile_threads / warp_threads;
  constexpr bool loads = packs == by_memory;
  const std::int64_t inner_step = by_memory ? plan.level[plan.transpose.across].bytes : bytes;
  const std::int64_t outer_step = by_memory ? plan.level[0].bytes : plan.transpose.pitch;
  const std::int64_t inner = by_memory ? tile.across : tile.along;
  const std::int64_t outer = by_memory ? tile.along : tile.across;
  std::byte* const base =
      by_memory ? plan.data + tile.offset : plan.packed - plan.begin + tile.packed;
  constexpr int steps = edge / rows, halves = edge / warp_threads;
  Granule<bytes> value[steps * halves] = {};
  const int lane = thread % warp_threads, first_row = thread / warp_threads;
  const std::int64_t last = tile.packed + (edge - 1) * plan.transpose.pitch + edge * bytes;
  if (inner == edge && outer == edge && tile.packed >= plan.begin && last <= plan.end) {
    std::byte* const first = base + lane * inner_step + first_row * outer_step;
    for (int pass = 0; pass < 2; ++pass) {
      for (int step = 0; step < steps * halves; ++step) {
        const int x = lane + step % halves * warp_threads, y = first_row + step / halves * rows;
        Granule<bytes>& near = by_memory ? square.element[y][x] : square.element[x][y];
        std::byte* const far =
            first + step % halves * warp_threads * inner_step + step / halves * rows * outer_step;
        if (pass == 0)
          value[step] = loads ? load<bytes>(far) : near;
        else if (loads)
          near = value[step];
        else
          store<bytes>(far, value[step]);
      }
    }
    return;
  }
  for (int pass = 0; pass < 2; ++pass) {  // All is read before anything is written.
    for (int step = 0; step < steps * halves; ++step) {
      const int x = lane + step % halves * warp_threads, y = first_row + step / halves * rows;
      if (x >= inner || y >= outer) continue;
      const std::int64_t at = tile.packed + (by_memory ? x * plan.transpose.pitch + y * bytes
                                                       : y * plan.transpose.pitch + x * bytes);
      if (at < plan.begin || at >= plan.end) continue;
      Granule<bytes>& near = by_memory ? square.element[y][x] : square.element[x][y];
      std::byte* const far = base + x * inner_step + y * outer_step;
      if (pass == 0)
        value[step] = loads ? load<bytes>(far) : near;
      else if (loads)
        near = value[step];
      else
        store<bytes>(far, value[step]);
    }
  }
}

}  // namespace quadriga::message
