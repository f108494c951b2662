// SPDX-License-Identifier: BSD-3-Clause
// bench/sparse_graph.cu: textbook Jacobi-CG by cuSPARSE and cuBLAS in a CUDA graph, as a peer.
//
// usage: quadriga-bench-sparse-graph FOLDER
// FOLDER has a matrix as indptr.npy and indices.npy (int32) and data.npy (float64), as
// bench/sparse_table.py writes it. One GPU. One JSON line for each algorithm of cuSPARSE's CSR
// product: milliseconds of an iteration, and the share of the residual that 500 iterations leave.
#include <cublas_v2.h>
#include <cusparse.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace {

constexpr int iterations_a_graph = 50;
constexpr int launches = 10;

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: status %d\n", what, status);
  std::exit(1);
}

/// The content of a .npy file of version 1 or 2, whose type the caller knows.
template <class T>
std::vector<T> read_array(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto bytes = static_cast<std::int64_t>(file.tellg());
  file.seekg(0);
  unsigned char head[12] = {};
  file.read(reinterpret_cast<char*>(head), sizeof head);
  if (!file || head[0] != 0x93) check(1, path.c_str());
  const bool is_first = head[6] == 1;
  const std::int64_t begin =
      is_first ? 10 + head[8] + 256 * head[9] : 12 + head[8] + 256 * head[9] + 65536 * head[10];
  std::vector<T> values(static_cast<std::size_t>(bytes - begin) / sizeof(T));
  file.seekg(begin);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

template <class T>
T* on_device(const std::vector<T>& values) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(T)), "memory");
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "a copy");
  return static_cast<T*>(memory);
}

/// rho, p^T q, and the next r^T z and ||r||^2.
struct Scalars {
  double rho;
  double curvature;
  double next;
  double squared;
};

__global__ void step(int n, const Scalars* scalars, const double* p, const double* q,
                     const double* m, double* x, double* r, double* z) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const double alpha = scalars->rho / scalars->curvature;
  x[i] += alpha * p[i];
  r[i] -= alpha * q[i];
  z[i] = m[i] * r[i];
}

__global__ void turn(int n, const Scalars* scalars, const double* z, double* p) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = z[i] + scalars->next / scalars->rho * p[i];
}

struct System {
  int n = 0;
  std::vector<double> b, inverse;
  double *x, *r, *z, *p, *q, *m;
  Scalars* scalars;
};

/// x = 0, and the rest of a first iteration.
void start(System& s, cublasHandle_t blas) {
  const std::size_t bytes = s.b.size() * sizeof(double);
  std::vector<double> z(s.b);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] *= s.inverse[i];
  check(cudaMemset(s.x, 0, bytes), "clearing x");
  check(cudaMemcpy(s.r, s.b.data(), bytes, cudaMemcpyHostToDevice), "r");
  check(cudaMemcpy(s.z, z.data(), bytes, cudaMemcpyHostToDevice), "z");
  check(cudaMemcpy(s.p, z.data(), bytes, cudaMemcpyHostToDevice), "p");
  check(cublasDdot(blas, s.n, s.r, 1, s.z, 1, &s.scalars->rho), "a dot product");
  check(cudaDeviceSynchronize(), "the start");
}

void measure(System& s, cusparseSpMatDescr_t a, cusparseHandle_t sparse, cublasHandle_t blas,
             cudaStream_t stream, cusparseSpMVAlg_t algorithm, const char* name) {
  cusparseDnVecDescr_t p, q;
  check(cusparseCreateDnVec(&p, s.n, s.p, CUDA_R_64F), "a vector");
  check(cusparseCreateDnVec(&q, s.n, s.q, CUDA_R_64F), "a vector");
  const double one = 1, zero = 0;
  std::size_t bytes = 0;
  constexpr auto as_it_is = CUSPARSE_OPERATION_NON_TRANSPOSE;
  check(cusparseSpMV_bufferSize(sparse, as_it_is, &one, a, p, &zero, q, CUDA_R_64F, algorithm,
                                &bytes),
        "a product's buffer");
  void* buffer = nullptr;
  check(cudaMalloc(&buffer, std::max<std::size_t>(bytes, 1)), "memory");
  check(cusparseSpMV_preprocess(sparse, as_it_is, &one, a, p, &zero, q, CUDA_R_64F, algorithm,
                                buffer),
        "preparing a product");
  const auto iterate = [&] {
    constexpr int threads = 256;
    const int blocks = (s.n + threads - 1) / threads;
    check(cusparseSpMV(sparse, as_it_is, &one, a, p, &zero, q, CUDA_R_64F, algorithm, buffer),
          "a product");
    check(cublasDdot(blas, s.n, s.p, 1, s.q, 1, &s.scalars->curvature), "a dot product");
    step<<<blocks, threads, 0, stream>>>(s.n, s.scalars, s.p, s.q, s.m, s.x, s.r, s.z);
    check(cublasDdot(blas, s.n, s.r, 1, s.z, 1, &s.scalars->next), "a dot product");
    check(cublasDdot(blas, s.n, s.r, 1, s.r, 1, &s.scalars->squared), "a dot product");
    turn<<<blocks, threads, 0, stream>>>(s.n, s.scalars, s.z, s.p);
    check(cudaMemcpyAsync(&s.scalars->rho, &s.scalars->next, sizeof(double),
                          cudaMemcpyDeviceToDevice, stream),
          "rho");
  };
  iterate();  // What the libraries allocate, they allocate now.
  check(cudaStreamSynchronize(stream), "an iteration");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording");
  for (int i = 0; i < iterations_a_graph; ++i) iterate();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t recorded = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "recording");
  check(cudaGraphInstantiate(&recorded, graph, 0), "a graph");
  double least = std::numeric_limits<double>::infinity();
  Scalars found{};
  for (int round = 0; round < 5; ++round) {
    start(s, blas);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) check(cudaGraphLaunch(recorded, stream), "a launch");
    check(cudaStreamSynchronize(stream), "iterations");
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    least = std::min(least, taken.count());
    check(cudaMemcpy(&found, s.scalars, sizeof found, cudaMemcpyDeviceToHost), "scalars");
  }
  double squared = 0;
  for (const double each : s.b) squared += each * each;
  std::printf("{\"algorithm\": \"%s\", \"rows\": %d, \"milliseconds\": %.6f, \"residual\": %.3g}\n",
              name, s.n, 1e3 * least / (launches * iterations_a_graph),
              std::sqrt(found.squared / squared));
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return std::fprintf(stderr, "usage: %s FOLDER\n", words[0]), 2;
  const std::string folder = words[1];
  const auto offsets = read_array<std::int32_t>(folder + "/indptr.npy");
  const auto columns = read_array<std::int32_t>(folder + "/indices.npy");
  const auto values = read_array<double>(folder + "/data.npy");
  System s;
  s.n = static_cast<int>(offsets.size()) - 1;
  s.b.resize(static_cast<std::size_t>(s.n));
  s.inverse.resize(s.b.size());
  std::uint64_t state = 1;
  for (int row = 0; row < s.n; ++row) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    s.b[row] = static_cast<double>(state >> 11) / static_cast<double>(1ull << 52) - 1;
    for (std::int32_t at = offsets[row]; at < offsets[row + 1]; ++at)
      if (columns[at] == row) s.inverse[row] = 1 / values[at];
  }
  for (double** each : {&s.x, &s.r, &s.z, &s.p, &s.q}) *each = on_device(s.b);
  s.m = on_device(s.inverse);
  s.scalars = on_device(std::vector<Scalars>(1));
  cudaStream_t stream = nullptr;
  cusparseHandle_t sparse = nullptr;
  cublasHandle_t blas = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  check(cusparseCreate(&sparse), "cuSPARSE");
  check(cublasCreate(&blas), "cuBLAS");
  check(cusparseSetStream(sparse, stream), "a stream");
  check(cublasSetStream(blas, stream), "a stream");
  check(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE), "a mode");
  cusparseSpMatDescr_t a;
  check(
      cusparseCreateCsr(&a, s.n, s.n, static_cast<std::int64_t>(values.size()), on_device(offsets),
                        on_device(columns), on_device(values), CUSPARSE_INDEX_32I,
                        CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
      "a matrix");
  measure(s, a, sparse, blas, stream, CUSPARSE_SPMV_CSR_ALG1, "CSR_ALG1");
  measure(s, a, sparse, blas, stream, CUSPARSE_SPMV_CSR_ALG2, "CSR_ALG2");
}
