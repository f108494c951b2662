// SPDX-License-Identifier: BSD-3-Clause
// examples/codelet.cpp: operations of one's own in C++: an integral over tiles, on devices.
// Build: c++ -std=c++20 codelet.cpp $(pkg-config --cflags --libs quadriga)
#include <quadriga/engine.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {
struct Interval {
  double begin;
  double step;
};

/// Fills a tile with samples of the function to be integrated.
void sample(const quadriga::Arguments& arguments) {
  const auto [begin, step] = arguments.param<Interval>();
  const quadriga::View& tile = arguments.operands[0];
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    const double x = begin + (static_cast<double>(i) + 0.5) * step;
    tile.as<double>()[i] = 4 / (1 + x * x) * step;
  }
}

/// Adds a tile's elements to a sum; sums of several tiles may be made in any order.
void add_up(const quadriga::Arguments& arguments) {
  const quadriga::View& tile = arguments.operands[0];
  double sum = 0;
  for (std::int64_t i = 0; i < tile.rows; ++i) sum += tile.as<double>()[i];
  *arguments.operands[1].as<double>() += sum;
}

}  // namespace

int main() {
  using quadriga::Access;
  quadriga::Codelet sampling{.name = "sample", .access = {Access::write}, .cpu = sample};
  quadriga::Codelet adding{
      .name = "add_up", .access = {Access::read, Access::commute}, .cpu = add_up};

  // 64 tiles of 32 KiB on two devices with room for 16 of them: the rest waits, or is made later.
  constexpr int tiles = 64;
  constexpr int size = 4096;
  quadriga::Engine engine({.devices = "emulated:2,memory=256KiB"});
  double integral = 0;
  const quadriga::Data total = engine.data(&integral, 1, 1, 1, quadriga::DType::float64);
  for (int i = 0; i < tiles; ++i) {
    const Interval interval{static_cast<double>(i) / tiles, 1.0 / (tiles * size)};
    const quadriga::Data tile = engine.temporary(size, 1, quadriga::DType::float64);
    engine.submit(sampling, {{tile, Access::write}}, interval);
    engine.submit(adding, {{tile, Access::read}, {total, Access::commute}});
  }
  engine.wait();

  std::printf("pi is %.12f; %llu bytes moved between host and devices\n", integral,
              static_cast<unsigned long long>(engine.counters().host_bytes()));
  return std::abs(integral - std::acos(-1.0)) < 1e-9 ? 0 : 1;
}
