// SPDX-License-Identifier: BSD-3-Clause
// examples/elementwise.cu: operations of one's own on GPUs, as "example_elementwise cuda:1" shows.
// Build: nvcc -std=c++20 elementwise.cu $(pkg-config --cflags --libs quadriga)
#include <quadriga/engine.h>
#include <quadriga/cuda.cuh>

#include <cstdio>
#include <vector>

namespace {

using quadriga::Access, quadriga::Tile;

/// y = y + alpha*x: its members are the task's parameters, and it runs on hosts and devices.
struct Axpy {
  double alpha;
  __host__ __device__ void operator()(const double& x, double& y) const { y += alpha * x; }
};

__host__ __device__ double mean_of(Tile<const double> tile, long long column) {
  double sum = 0;
  for (long long i = 0; i < tile.rows; ++i) sum += tile(i, column);
  return sum / static_cast<double>(tile.rows);
}

/// A kernel of one's own: a block a column.
__global__ void means_of(Tile<const double> tile, Tile<double> means) {
  means(blockIdx.x, 0) = mean_of(tile, blockIdx.x);
}

void queue_means(const quadriga::Arguments& call) {
  const Tile<double> means(call.operands[1]);
  means_of<<<static_cast<unsigned>(means.rows), 1, 0, stream_of(call)>>>(
      Tile<const double>(call.operands[0]), means);
}

void compute_means(const quadriga::Arguments& call) {
  const Tile<double> means(call.operands[1]);
  for (long long j = 0; j < means.rows; ++j)
    means(j, 0) = mean_of(Tile<const double>(call.operands[0]), j);
}

}  // namespace

int main(int count, char** words) {
  constexpr int rows = 100, cols = 50;
  std::vector<double> x(rows * cols, 1.0), y(rows * cols, 3.0), means(cols);
  const auto axpy =
      quadriga::elementwise<Axpy, const double, double>("axpy", {Access::read, Access::update});
  const quadriga::Codelet mean{"mean", {Access::read, Access::write}, compute_means, queue_means};
  quadriga::Engine engine({.devices = count > 1 ? words[1] : "cpu"});
  const auto a = engine.data(x.data(), rows, cols, rows, quadriga::DType::float64);
  const auto b = engine.data(y.data(), rows, cols, rows, quadriga::DType::float64);
  const auto result = engine.data(means.data(), cols, 1, cols, quadriga::DType::float64);
  engine.submit(axpy, {{a, Access::read}, {b, Access::update}}, Axpy{2.0});
  engine.submit(mean, {{b, Access::read}, {result, Access::write}});
  engine.wait();
  return std::printf("the mean of a column is %g\n", means.back()) < 0 || means.back() != 5;
}
