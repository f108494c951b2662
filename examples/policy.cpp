// SPDX-License-Identifier: BSD-3-Clause
// examples/policy.cpp: a policy of one's own: tasks go where most of their bytes are.
// Build: c++ -std=c++20 policy.cpp $(pkg-config --cflags --libs quadriga)
#include <quadriga/engine.h>
#include <quadriga/policy.h>

#include <algorithm>
#include <cstdio>
#include <vector>
using namespace quadriga;

namespace {

/// Where most bytes are, and to the device with the least work among equals; devices that have
/// nothing to do take what another has longest work with.
class DataFirst final : public Policy {
 public:
  std::size_t place(const PlaceQuestion& question) override {
    const auto is_worse = [](const auto& a, const auto& b) {
      return a.bytes_here != b.bytes_here ? a.bytes_here < b.bytes_here
                                          : a.queued_seconds > b.queued_seconds;
    };
    const auto best = std::ranges::max_element(question.candidates, is_worse);
    return static_cast<std::size_t>(best - question.candidates.begin());
  }
  std::size_t victim(const StealQuestion& question) override {
    const auto busiest = std::ranges::max_element(question.queued);
    return *busiest > 0 ? static_cast<std::size_t>(busiest - question.queued.begin()) : none;
  }
  std::size_t choose(std::span<const StealCandidate>) override { return 0; }
};

/// Adds 1 to each element.
void increment(const Arguments& arguments) {
  const View& tile = arguments.operands[0];
  for (std::int64_t i = 0; i < tile.rows; ++i) tile.as<double>()[i] += 1;
}

}  // namespace

int main() {
  register_policy("data_first", "where most bytes are",
                  [](const PolicyContext&) { return std::make_unique<DataFirst>(); });
  const Codelet adding{.name = "increment", .access = {Access::update}, .cpu = increment};
  constexpr int tiles = 16, rows = 4096, steps = 10;
  std::vector<double> elements(std::size_t{tiles} * rows, 0);
  Engine engine({.devices = "emulated:2,memory=1MiB", .policy = "data_first"});
  std::vector<Data> data;
  for (int i = 0; i < tiles; ++i)
    data.push_back(engine.data(&elements[std::size_t(i) * rows], rows, 1, rows, DType::float64));
  for (int step = 0; step < steps; ++step)
    for (const Data& tile : data) engine.submit(adding, {{tile, Access::update}});
  engine.wait();
  const bool is_right = std::ranges::count(elements, steps) == tiles * rows;
  std::printf("%llu bytes moved between host and devices, %llu are the least\n",
              static_cast<unsigned long long>(engine.counters().host_bytes()),
              static_cast<unsigned long long>(2 * elements.size() * sizeof(double)));
  return is_right ? 0 : 1;
}
