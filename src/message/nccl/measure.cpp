// SPDX-License-Identifier: BSD-3-Clause
// src/message/nccl/measure.cpp: measures both ways of a kind of collective, once for a group.
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "message/nccl/collectives.h"

namespace quadriga::message {
namespace {

using Clock = std::chrono::steady_clock;

// Of these, one tells what a call costs beside its bytes, the other the rate.
constexpr std::int64_t few_bytes = std::int64_t{64} << 10, many_bytes = std::int64_t{64} << 20;
// The first one opens what others find open.
constexpr int repetitions = 4;

constexpr bool is_of_parts(TreeCollective kind) {
  return kind == TreeCollective::reduce_scatter || kind == TreeCollective::all_gather;
}

// Of all ranks.
template <class Word>
std::vector<Word> told_by_all(Collective& collective, const Word& own) {
  std::vector<Word> all(static_cast<std::size_t>(collective.size()));
  collective.all_to_all(&own, 0, all.data(), sizeof own);
  return all;
}

}  // namespace

// What the slowest rank took, at best. Without room for it NCCL counts as no faster.
MeasuredWays NcclUse::measured(Collective& collective, NcclGroup& group) {
  const int ranks = collective.size();
  // Parts are alike, and end with an element.
  const std::int64_t unit = 16 * std::int64_t{ranks};
  MeasuredWays ways{few_bytes / unit * unit, 0, {}, {}};
  Room given, got;
  // Where memory is short, less of it, down to what still differs from few bytes.
  std::int64_t own = many_bytes;
  for (; own > 4 * few_bytes; own /= 2) try {
      given = Room(wish_.home, static_cast<std::size_t>(own));
      got = Room(wish_.home, static_cast<std::size_t>(own));
      break;
    } catch (const Error& error) {
      if (error.code() != Errc::too_large) throw;
      given = Room();
    }
  const std::int64_t most = std::ranges::min(told_by_all(collective, own));
  if (most <= 4 * few_bytes) return ways;
  ways.many_bytes = most / unit * unit;

  const auto ours = [&](std::int64_t bytes) {
    CollectiveShape shape{wish_.kind, wish_.root, {bytes}, 1};
    if (is_of_parts(wish_.kind)) shape.bytes.assign(static_cast<std::size_t>(ranks), bytes / ranks);
    const bool combines =
        wish_.kind != TreeCollective::broadcast && wish_.kind != TreeCollective::all_gather;
    Reducing reducing{wish_.home, wish_.operation, {}};
    if (combines) {
      shape.element_bytes = static_cast<std::int64_t>(size_of(wish_.type));
      reducing.elements = ElementSignature(wish_.type)
                              .repeated(static_cast<std::uint64_t>(bytes / shape.element_bytes));
    }
    const auto places = [&](const StepPlace& place, std::int64_t size) {
      const bool is_output =
          place.buffer == StepBuffer::output && wish_.kind != TreeCollective::broadcast;
      return (is_output ? got : given).at(place.offset, static_cast<std::size_t>(size));
    };
    collective.take(*collective.planned(shape, {}), places, reducing);
  };
  const auto by_nccl = [&](std::int64_t bytes) {
    void* const into = wish_.kind == TreeCollective::broadcast ? given.data() : got.data();
    run(collective, group, {wish_.kind, wish_.root, bytes, *numbers_}, given.data(), into);
  };
  const auto seconds = [&](const auto& way, std::int64_t bytes) {
    static_cast<void>(told_by_all(collective, char{1}));
    const auto begin = Clock::now();
    way(bytes);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  constexpr double longest = std::numeric_limits<double>::max();
  ways.ours = ways.nccl = {longest, longest};
  for (int i = 0; i < repetitions; ++i) {
    const WaySeconds first{seconds(ours, ways.few_bytes), seconds(ours, ways.many_bytes)};
    const WaySeconds its{seconds(by_nccl, ways.few_bytes), seconds(by_nccl, ways.many_bytes)};
    if (i == 0) continue;
    ways.ours = {std::min(ways.ours.few, first.few), std::min(ways.ours.many, first.many)};
    ways.nccl = {std::min(ways.nccl.few, its.few), std::min(ways.nccl.many, its.many)};
  }
  struct Both {
    WaySeconds ours, nccl;
  };
  for (const Both& each : told_by_all(collective, Both{ways.ours, ways.nccl})) {
    ways.ours = ways.ours.slowest(each.ours);
    ways.nccl = ways.nccl.slowest(each.nccl);
  }
  return ways;
}

}  // namespace quadriga::message
