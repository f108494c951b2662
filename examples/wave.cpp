// SPDX-License-Identifier: BSD-3-Clause
// examples/wave.cpp: a wave on a drum in bands of rows, on threads or processes; drawn.
// Build: c++ -std=c++20 wave.cpp $(pkg-config --cflags --libs quadriga)
// Run it as is, on 4 threads, or by: quadriga launch -n 4 ./wave
#include <quadriga/message.h>

#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

namespace message = quadriga::message;

using Grid = std::vector<double>;
constexpr int size = 256, steps = 200;

// The whole drum on rank 0: each rank computes a band, and gets its neighbours' next rows.
Grid wave(const message::Communicator& comm) {
  const int rows = size / comm.size(), first = comm.rank() * rows;
  const auto row = [](Grid& grid, int i) { return std::span(grid).subspan(i * size, size); };
  Grid now((rows + 2) * size);
  for (int i = 0; i < rows + 2; ++i)
    for (int j = 1; j + 1 < size; ++j) {
      const double y = first + i - 1 - 0.3 * size, x = j - 0.6 * size;
      const bool on_rim = first + i <= 1 || first + i >= size;
      now[i * size + j] = on_rim ? 0 : std::exp(-(x * x + y * y) / 60);
    }
  Grid before(now);
  // What travels before each step is set up once, for either grid.
  const auto borders = [&](Grid& grid) {
    std::vector<message::PlannedSend> sends;
    std::vector<message::PlannedReceive> receives;
    for (const int way : {-1, 1}) {
      const int near = comm.rank() + way;
      if (near < 0 || near >= comm.size()) continue;
      sends.push_back({row(grid, way < 0 ? 1 : rows), near});
      receives.push_back({row(grid, way < 0 ? 0 : rows + 1), near});
    }
    return comm.plan(sends, receives);
  };
  message::ExchangePlan exchange = borders(now), other = borders(before);
  for (int step = 0; step < steps; ++step) {
    exchange.start();
    exchange.wait();
    for (int i = 1; i <= rows; ++i) {
      if (first + i == 1 || first + i == size) continue;
      for (int j = 1; j + 1 < size; ++j) {
        const double* const at = &now[i * size + j];
        double& next = before[i * size + j];
        next = 2 * *at - next + 0.25 * (at[-size] + at[size] + at[-1] + at[1] - 4 * *at);
      }
    }
    std::swap(before, now);
    std::swap(exchange, other);
  }
  Grid whole(comm.rank() == 0 ? size * size : 0);
  comm.gather(std::span(now).subspan(size, rows * size), whole);
  return whole;
}

int main() {
  const message::Communicator comm = message::world({60, 60});
  const Grid whole = wave(comm);
  if (comm.rank() > 0) return 0;
  if (comm.size() == 1) {
    std::vector<Grid> parts(4);
    std::vector<std::thread> ranks;
    for (const auto& each : message::local(4, 60))
      ranks.emplace_back([&parts, each] { parts[each.rank()] = wave(each); });
    for (std::thread& each : ranks) each.join();
    if (parts[0] != whole) return 1;  // Equal to the bit.
  }
  for (int i = 0; i < size; i += 16, std::puts(""))
    for (int j = 0; j < size; j += 8)
      std::putchar(
          " .:-=+*#%@"[static_cast<int>(std::fmin(std::fmax(whole[i * size + j] * 40 + 5, 0), 9))]);
}
