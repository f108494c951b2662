// SPDX-License-Identifier: BSD-3-Clause
// bench/micro.cpp: what single decisions of the pure parts cost; for those who change them.
//
// Built on request: cmake --build build/release --target quadriga-micro.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "base/random.h"
#include "device/fair_share.h"
#include "memory/arena.h"
#include "memory/directory.h"
#include "memory/eviction.h"

namespace quadriga {
namespace {

// A tile goes to a device, is updated there and comes home.
void directory_round_trip(benchmark::State& state) {
  Directory directory(9);
  const TileId tile = directory.add(true);
  for (auto _ : state) {
    directory.copy_issued(tile, host_space, 1);
    directory.copy_ended(tile, host_space, 1, true);
    directory.write_issued(tile, 1);
    directory.copy_issued(tile, 1, host_space);
    directory.copy_ended(tile, 1, host_space, true);
    directory.dropped(tile, 1);
  }
}
BENCHMARK(directory_round_trip);

void directory_valid_and_pin(benchmark::State& state) {
  Directory directory(9);
  const TileId tile = directory.add(true);
  for (auto _ : state) {
    benchmark::DoNotOptimize(directory.valid(tile, host_space));
    directory.pin(tile, host_space);
    directory.unpin(tile, host_space);
  }
}
BENCHMARK(directory_valid_and_pin);

// Tiles of one size on a full device.
void arena_exchange(benchmark::State& state) {
  const auto blocks = static_cast<std::size_t>(state.range(0));
  constexpr std::size_t bytes = 1 << 20;
  Arena arena(blocks * bytes);
  for (std::size_t i = 0; i < blocks; ++i) arena.allocate(bytes);
  Random random(1);
  for (auto _ : state) {
    arena.deallocate(random.below(blocks) * bytes);
    benchmark::DoNotOptimize(arena.allocate(bytes));
  }
}
BENCHMARK(arena_exchange)->Arg(64)->Arg(4096);

void choice_of_a_victim(benchmark::State& state) {
  const auto tiles = static_cast<TileId>(state.range(0));
  constexpr std::size_t bytes = 1 << 20;
  Arena arena(tiles * bytes);
  std::vector<Candidate> candidates;
  Random random(2);
  for (TileId tile = 0; tile < tiles; ++tile) {
    Candidate candidate;
    candidate.tile = tile;
    candidate.offset = *arena.allocate(bytes);
    candidate.bytes = bytes;
    candidate.next_use = random.below(10'000);
    candidate.dirty = random.chance(0.5);
    candidates.push_back(candidate);
  }
  const FarthestUse rule(1000);
  std::array<TileId, 8> victims;
  for (auto _ : state) {
    benchmark::DoNotOptimize(choose_victims(rule, arena, candidates, bytes, victims));
  }
}
BENCHMARK(choice_of_a_victim)->Arg(64)->Arg(1024);

// Copies to eight devices and home again at once.
void shares_of_links(benchmark::State& state) {
  const Machine machine = Machine::parse("emulated:8,h2d=6GB/s,d2h=6GB/s");
  FairShare shares(machine);
  std::vector<int> flows;
  for (int i = 0; i < static_cast<int>(machine.routes.size()); ++i) flows.push_back(i);
  std::vector<double> rates(flows.size());
  for (auto _ : state) {
    shares.rates(flows, rates);
    benchmark::DoNotOptimize(rates.data());
  }
}
BENCHMARK(shares_of_links);

}  // namespace
}  // namespace quadriga

BENCHMARK_MAIN();
