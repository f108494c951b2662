// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_resident.cpp: matrices that lie on a GPU already, as arrays of CuPy and PyTorch do: the
// engine beside one call of cuBLAS or cuSOLVER on the same memory, by turns. The ceiling is that
// call.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusolverDn.h>
#include <quadriga/linalg.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "gpu.h"
#include "gpu_buffer.h"
#include "gpu_parts.h"
#include "linalg/kernels/handles_cuda.h"
#include "line.h"

namespace quadriga::bench {
namespace {

using cuda::check;
using kernels::cuda::check;
using linalg::MatrixView;

/// A square matrix of doubles on the first device.
class Resident {
 public:
  explicit Resident(std::int64_t order)
      : order_(order), buffer_(static_cast<std::size_t>(order * order) * sizeof(double)) {}
  double* data() const { return buffer_.doubles(); }
  std::size_t bytes() const { return static_cast<std::size_t>(order_ * order_) * sizeof(double); }
  MatrixView view() const {
    MatrixView view = MatrixView::columns(data(), order_, order_, DType::float64);
    view.device = 0;
    return view;
  }
  void fill(bool positive) const {
    const auto n = static_cast<int>(order_);
    fill_on_device(data(), n, n, 0, positive);
    check(cudaDeviceSynchronize(), "filling a matrix");
  }
  void become(const Resident& other) const {
    check(cudaMemcpy(data(), other.data(), bytes(), cudaMemcpyDeviceToDevice), "copying a matrix");
    check(cudaDeviceSynchronize(), "copying a matrix");
  }
  void fetch(const HostMatrix& to) const {
    check(cudaMemcpy(to.data(), data(), bytes(), cudaMemcpyDeviceToHost), "fetching a matrix");
  }

 private:
  std::int64_t order_;
  DeviceBuffer buffer_;
};

/// Seconds of two ways to do the same, by turns; the first turn isn't counted. Before each,
/// prepare(whether it is ours) is called.
struct Turns {
  std::vector<double> ours;
  std::vector<double> theirs;

  template <class Ours, class Theirs, class Prepare>
  void run(int repeat, Ours our_way, Theirs their_way, Prepare prepare) {
    for (int turn = 0; turn <= repeat; ++turn) {
      prepare(true);
      const double begin = now();
      our_way();
      const double middle = now();
      prepare(false);
      const double again = now();
      their_way();
      if (turn == 0) continue;
      ours.push_back(middle - begin);
      theirs.push_back(now() - again);
    }
  }
  void print(const char* name, const char* peer, long long n, double flops, double error) const {
    Line(name)
        .add("n", static_cast<double>(n))
        .add("tflops", flops / median(ours) * 1e-12)
        .add(peer, flops / median(theirs) * 1e-12)
        .add("ratio", median(theirs) / median(ours))
        .add("error", error)
        .print();
  }
};

void resident_product(Engine& engine, long long n, int repeat) {
  const Resident a(n), b(n), ours(n), theirs(n);
  a.fill(false);
  b.fill(false);
  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "making a handle");
  const double one = 1;
  const double zero = 0;
  const auto order = static_cast<int>(n);
  Turns turns;
  turns.run(
      repeat,
      [&] {
        linalg::matmul(engine, 1.0, a.view(), linalg::Op::none, b.view(), linalg::Op::none, 0.0,
                       ours.view());
      },
      [&] {
        check(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, order, order, order, &one, a.data(),
                          order, b.data(), order, &zero, theirs.data(), order),
              "gemm");
        check(cudaDeviceSynchronize(), "gemm");
      },
      [](bool) {});
  cublasDestroy(handle);
  const HostMatrix left(n, true), right(n, true), product(n, true);
  a.fetch(left);
  b.fetch(right);
  ours.fetch(product);
  turns.print("resident gemm", "cublas_tflops", n, 2 * std::pow(static_cast<double>(n), 3),
              product_error(left, right, product));
}

/// One factorization by cuSOLVER.
class Solver {
 public:
  explicit Solver(const Resident& a, std::int64_t order) : a_(a), order_(order) {
    check(cusolverDnCreate(&handle_), "making a handle");
    check(cusolverDnCreateParams(&params_), "making parameters");
    std::size_t bytes = 0;
    std::size_t host_bytes = 0;
    check(cusolverDnXpotrf_bufferSize(handle_, params_, CUBLAS_FILL_MODE_LOWER, order, CUDA_R_64F,
                                      a.data(), order, CUDA_R_64F, &bytes, &host_bytes),
          "asking for potrf's workspace");
    work_ = std::make_unique<DeviceBuffer>(std::max<std::size_t>(bytes, 1));
    bytes_ = bytes;
    host_work_.resize(host_bytes);
  }
  ~Solver() {
    cusolverDnDestroyParams(params_);
    cusolverDnDestroy(handle_);
  }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  void factorize() {
    check(cusolverDnXpotrf(handle_, params_, CUBLAS_FILL_MODE_LOWER, order_, CUDA_R_64F, a_.data(),
                           order_, CUDA_R_64F, work_->data(), bytes_, host_work_.data(),
                           host_work_.size(), static_cast<int*>(info_.data())),
          "potrf");
    check(cudaDeviceSynchronize(), "potrf");
  }

 private:
  const Resident& a_;
  std::int64_t order_;
  cusolverDnHandle_t handle_ = nullptr;
  cusolverDnParams_t params_ = nullptr;
  std::unique_ptr<DeviceBuffer> work_;
  std::size_t bytes_ = 0;
  std::vector<std::byte> host_work_;
  DeviceBuffer info_{sizeof(int)};
};

void resident_factor(Engine& engine, long long n, int repeat) {
  const Resident a(n), ours(n), theirs(n);
  a.fill(true);
  Solver solver(theirs, n);
  Turns turns;
  turns.run(
      repeat,
      [&] {
        linalg::cholesky(engine, ours.view(), ours.view(), linalg::Uplo::lower,
                         linalg::Other::leave);
      },
      [&] { solver.factorize(); }, [&](bool is_ours) { (is_ours ? ours : theirs).become(a); });
  const HostMatrix matrix(n, true), factor(n, true);
  a.fetch(matrix);
  ours.fetch(factor);
  turns.print("resident potrf", "cusolver_tflops", n, std::pow(static_cast<double>(n), 3) / 3,
              FactorCheck(matrix).error(factor));
}

}  // namespace

void resident_problems(const Machine& machine, const Settings& settings) {
  const long long n = settings.integer("n", 16384);
  const int repeat = static_cast<int>(settings.integer("repeat", 9));
  check(cudaSetDevice(0), "choosing a device");
  EngineOptions options;
  options.machine = machine;
  // What lies there already is most of what a run needs: the arena leaves room for it.
  for (Device& device : options.machine->devices) device.memory_bytes /= 4;
  Engine engine(options);
  resident_product(engine, n, repeat);
  resident_factor(engine, n, repeat);
}

}  // namespace quadriga::bench
