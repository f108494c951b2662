// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/generate_cuda.cu: random elements and covariances made on a device, to the
// host's bits.
#include <quadriga/error.h>

#include <map>
#include <mutex>

#include "base/random.h"
#include "device/cuda/cuda_check.h"
#include "linalg/kernels/covariance.h"
#include "linalg/kernels/elements_cuda.h"
#include "linalg/kernels/exponential.h"
#include "linalg/kernels/number_cuda.cuh"
#include "linalg/kernels/uniform.h"

namespace quadriga::kernels::cuda {
namespace {

using quadriga::cuda::check;

__device__ void draw(std::uint64_t bits, float& out) { uniform(bits, out); }
__device__ void draw(std::uint64_t bits, double& out) { uniform(bits, out); }
template <class Real>
__device__ void draw(std::uint64_t bits, Pair<Real>& out) {
  uniform(bits, out.real);
  uniform(mix(bits), out.imag);
}

template <class N>
struct Draw {
  RandomMatrix random;
  KernelTile<N> c;
  __device__ void operator()(int i, int j) const {
    const std::int64_t row = random.first_row + i;
    const std::int64_t column = random.first_col + j;
    const bool mirrored = random.hermitian && row < column;
    const std::uint64_t key = column_key(random.seed, mirrored ? row : column);
    N value;
    draw(element_bits(key, mirrored ? column : row), value);
    if (mirrored) value = conjugate_of(value);
    if (row == column) add_to_diagonal(value);
    c.data[i + static_cast<std::ptrdiff_t>(j) * c.ld] = value;
  }
  template <class Real>
  __device__ void add_to_diagonal(Real& value) const {
    value += static_cast<Real>(random.on_diagonal);
  }
  template <class Real>
  __device__ void add_to_diagonal(Pair<Real>& value) const {
    if (random.hermitian) value.imag = 0;
    value.real += static_cast<Real>(random.on_diagonal);
  }
};

/// Points on a device: coordinate d of point i at values[i + d*stride].
struct DevicePoints {
  const double* values = nullptr;
  std::int64_t stride = 0;
};

constexpr int most_dimensions = 64;

struct CovarianceCall {
  DevicePoints rows;
  DevicePoints cols;
  std::int64_t first_row;
  std::int64_t first_col;
  int dimensions;
  CovarianceKind kind;
  bool same;
  double variance;
  double nugget;
  double inverse_scales[most_dimensions];
};

__device__ double scaled_distance(double squared, double factor) {
  const double distance = sqrt(squared * factor);
  return distance < 1000 ? distance : 1000;
}

__device__ double correlation(CovarianceKind kind, double squared) {
  if (kind == CovarianceKind::rbf) return exp_of_negative(-0.5 * squared);
  if (kind == CovarianceKind::matern12) return exp_of_negative(-scaled_distance(squared, 1));
  if (kind == CovarianceKind::matern32) {
    const double s = scaled_distance(squared, 3);
    return (1 + s) * exp_of_negative(-s);
  }
  const double s = scaled_distance(squared, 5);
  return (1 + s * (1 + s * (1.0 / 3))) * exp_of_negative(-s);
}

template <class T>
__global__ void covariances(const __grid_constant__ CovarianceCall call, KernelTile<T> out) {
  const int i = static_cast<int>(blockIdx.x) * threads_a_block + static_cast<int>(threadIdx.x);
  if (i >= out.rows) return;
  const std::int64_t row = call.first_row + i;
  for (int j = static_cast<int>(blockIdx.y); j < out.cols; j += static_cast<int>(gridDim.y)) {
    const std::int64_t column = call.first_col + j;
    double squared = 0;
    for (int d = 0; d < call.dimensions; ++d) {
      const double x = call.rows.values[row + d * call.rows.stride];
      const double y = call.cols.values[column + d * call.cols.stride];
      const double difference = (x - y) * call.inverse_scales[d];
      squared += difference * difference;
    }
    const double value = call.same && row == column
                             ? call.variance + call.nugget
                             : call.variance * correlation(call.kind, squared);
    out.data[i + static_cast<std::ptrdiff_t>(j) * out.ld] = static_cast<T>(value);
  }
}

/// Copies of points on devices, as long as somebody holds the points. Any thread.
class PointCopies {
 public:
  /// Copies them to the current device if they aren't there; waits for the copy.
  DevicePoints find(const Points& points, cudaStream_t stream) {
    int device = 0;
    check(cudaGetDevice(&device), "finding the current device");
    const std::lock_guard lock(mutex_);
    const auto key = std::pair(device, points.coordinate(0));
    auto found = copies_.find(key);
    if (found != copies_.end() && found->second.of.expired()) found = copies_.end();
    if (found == copies_.end()) {
      forget_unused();
      found = copies_.insert_or_assign(key, upload(points, stream)).first;
    }
    return {found->second.values, points.count() + Points::padding};
  }

 private:
  struct Copy {
    std::weak_ptr<const std::vector<double>> of;
    double* values = nullptr;
  };

  static Copy upload(const Points& points, cudaStream_t stream) {
    Copy copy{points.values(), nullptr};
    const std::size_t bytes = points.values()->size() * sizeof(double);
    check(cudaMalloc(&copy.values, bytes), "allocating points on a device");
    check(cudaMemcpyAsync(copy.values, points.coordinate(0), bytes, cudaMemcpyHostToDevice, stream),
          "copying points to a device");
    check(cudaStreamSynchronize(stream), "copying points to a device");
    return copy;
  }
  // Nothing queued uses points that nobody holds: tasks hold what they were given.
  void forget_unused() {
    std::erase_if(copies_, [](const auto& entry) {
      if (!entry.second.of.expired()) return false;
      const quadriga::cuda::DeviceGuard guard(entry.first.first);
      cudaFree(entry.second.values);
      return true;
    });
  }

  std::mutex mutex_;
  std::map<std::pair<int, const double*>, Copy> copies_;
};

PointCopies& point_copies() {
  static PointCopies& copies = *new PointCopies;  // Streams may outlive static objects.
  return copies;
}

}  // namespace

template <class T>
void fill_random(cudaStream_t stream, const RandomMatrix& random, KernelTile<T> c) {
  if (c.empty()) return;
  visit<<<grid_for(c.rows, c.cols), threads_a_block, 0, stream>>>(
      c.rows, c.cols, TileRegion{}, Draw<Number<T>>{random, numbers(c)});
  check(cudaGetLastError(), "random");
}

template <class T>
void covariance(cudaStream_t stream, const Covariance& covariance, std::int64_t first_row,
                std::int64_t first_col, KernelTile<T> out) {
  require(first_row >= 0 && first_col >= 0 && first_row + out.rows <= covariance.rows() &&
              first_col + out.cols <= covariance.cols(),
          "covariance: the tile reaches beyond the matrix");
  const CovarianceParams& params = covariance.params();
  const std::vector<double>& inverse_scales = covariance.inverse_scales();
  require(inverse_scales.size() <= most_dimensions,
          "covariance: points on a GPU have at most 64 dimensions");
  if (out.empty()) return;
  CovarianceCall call{};
  call.rows = point_copies().find(covariance.row_points(), stream);
  call.cols = point_copies().find(covariance.col_points(), stream);
  call.first_row = first_row;
  call.first_col = first_col;
  call.dimensions = static_cast<int>(inverse_scales.size());
  call.kind = params.kind;
  call.same = covariance.of_one_set();
  call.variance = params.variance;
  call.nugget = params.nugget;
  std::ranges::copy(inverse_scales, call.inverse_scales);
  covariances<<<grid_for(out.rows, out.cols), threads_a_block, 0, stream>>>(call, out);
  check(cudaGetLastError(), "covariance");
}

#define QUADRIGA_INSTANTIATE(T) \
  template void fill_random<T>(cudaStream_t, const RandomMatrix&, KernelTile<T>);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE
template void covariance<float>(cudaStream_t, const Covariance&, std::int64_t, std::int64_t,
                                KernelTile<float>);
template void covariance<double>(cudaStream_t, const Covariance&, std::int64_t, std::int64_t,
                                 KernelTile<double>);

}  // namespace quadriga::kernels::cuda
