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

constexpr int size = 256, steps = 200;
using Grid = std::vector<double>;

// The whole drum on rank 0: each rank computes a band, and gets its neighbours' next rows.
Grid wave(const message::Communicator& comm) {
  const int rows = size / comm.size(), first = comm.rank() * rows;
  const auto row = [](Grid& grid, int i) { return std::span(grid).subspan(i * size, size); };
  Grid now((rows + 2) * size), before(now), after(now);
  for (int i = 0; i < rows + 2; ++i)
    for (int j = 1; j + 1 < size; ++j) {
      const double y = first + i - 1 - 0.3 * size, x = j - 0.6 * size;
      const bool is_rim = first + i - 1 <= 0 || first + i >= size;
      now[i * size + j] = is_rim ? 0 : std::exp(-(x * x + y * y) / 60);
    }
  before = now;
  for (int step = 0; step < steps; ++step) {
    std::vector<message::Request> moving;
    if (comm.rank() > 0) {
      moving.push_back(comm.isend(row(now, 1), comm.rank() - 1));
      moving.push_back(comm.irecv(row(now, 0), comm.rank() - 1));
    }
    if (comm.rank() + 1 < comm.size()) {
      moving.push_back(comm.isend(row(now, rows), comm.rank() + 1));
      moving.push_back(comm.irecv(row(now, rows + 1), comm.rank() + 1));
    }
    message::waitall(moving);
    for (int i = 1; i <= rows; ++i) {
      if (first + i == 1 || first + i == size) continue;
      for (int j = 1; j + 1 < size; ++j) {
        const double* const at = &now[i * size + j];
        const double near = at[-size] + at[size] + at[-1] + at[1];
        after[i * size + j] = 2 * *at - before[i * size + j] + 0.25 * (near - 4 * *at);
      }
    }
    std::swap(before, now);
    std::swap(now, after);
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
    Grid together;
    std::vector<std::thread> ranks;
    for (const auto& each : message::local(4, 60))
      ranks.emplace_back([each, &together] {
        Grid made = wave(each);
        if (each.rank() == 0) together = std::move(made);
      });
    for (std::thread& each : ranks) each.join();
    if (together != whole) return 1;  // Equal to the bit.
  }
  for (int i = 0; i < size; i += 16, std::puts(""))
    for (int j = 0; j < size; j += 8)
      std::putchar(
          " .:-=+*#%@"[static_cast<int>(std::fmin(std::fmax(whole[i * size + j] * 40 + 5, 0), 9))]);
}
