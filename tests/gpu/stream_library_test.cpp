// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/stream_library_test.cpp: stages of streams that call cuFFT and cuBLAS, on the streams
// of all GPUs, give what the same stages give on the host.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <quadriga/per_stream.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_library.h"
#include "device/cuda/cuda_backend.h"
#include "linalg/kernels/handles_cuda.h"
#include "linalg/kernels/library_cuda.h"

namespace quadriga::kernels {
namespace {

using Complex = std::complex<float>;

constexpr std::uint64_t chunks = 40;
constexpr std::int64_t length = 256;  // of a transform, a column
constexpr std::int64_t columns = 96;

// ---- cuFFT, of which a build needs nothing: it may be absent.

constexpr int complex_to_complex = 0x29;  // CUFFT_C2C
constexpr int forwards = -1;              // CUFFT_FORWARD

const SharedLibrary& cufft() {
  static const SharedLibrary library("libcufft.so.12");  // CUDA 13's
  return library;
}

template <class Function>
Function* of_cufft(const char* name) {
  return reinterpret_cast<Function*>(cufft().find(name));
}

void check_fft(int status, const std::string& call) {
  if (status != 0) fail(Errc::internal, call + ": cuFFT's status " + std::to_string(status));
}

class FftPlan {
 public:
  explicit FftPlan(void* stream) {
    check_fft(of_cufft<int(int*, int, int, int)>("cufftPlan1d")(
                  &plan_, static_cast<int>(length), complex_to_complex, static_cast<int>(columns)),
              "cufftPlan1d");
    check_fft(of_cufft<int(int, void*)>("cufftSetStream")(plan_, stream), "cufftSetStream");
  }
  FftPlan(FftPlan&& other) noexcept : plan_(std::exchange(other.plan_, -1)) {}
  ~FftPlan() {
    if (plan_ >= 0) of_cufft<int(int)>("cufftDestroy")(plan_);
  }
  void transform(void* data) {
    check_fft(of_cufft<int(int, void*, void*, int)>("cufftExecC2C")(plan_, data, data, forwards),
              "cufftExecC2C");
  }

 private:
  int plan_ = -1;
};

/// Cooley and Tukey, radix 2.
void transform(std::vector<std::complex<double>>& values) {
  const std::size_t n = values.size();
  if (n == 1) return;
  std::vector<std::complex<double>> even(n / 2);
  std::vector<std::complex<double>> odd(n / 2);
  for (std::size_t i = 0; i < n; ++i) (i % 2 ? odd : even)[i / 2] = values[i];
  transform(even);
  transform(odd);
  for (std::size_t k = 0; k < n / 2; ++k) {
    const auto turned = odd[k] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) /
                                                     static_cast<double>(n));
    values[k] = even[k] + turned;
    values[k + n / 2] = even[k] - turned;
  }
}

void transform_columns(const View& x) {
  for (std::int64_t c = 0; c < x.cols; ++c) {
    Complex* const column = x.as<Complex>() + c * x.ld;
    std::vector<std::complex<double>> values(column, column + x.rows);
    transform(values);
    std::ranges::copy(values, column);
  }
}

bool fill(Chunk& chunk) {
  if (chunk.number() == chunks) return false;
  const View x = chunk.add("x", length, columns, DType::complex64);
  for (std::int64_t i = 0; i < length * columns; ++i) {
    const auto seed =
        static_cast<std::uint32_t>(i + 7919 * static_cast<std::int64_t>(chunk.number()));
    const auto drawn = static_cast<int>((seed * 2654435761u) >> 24);
    x.as<Complex>()[i] = {static_cast<float>(drawn - 128), static_cast<float>(drawn % 17 - 8)};
  }
  return true;
}

std::vector<std::vector<Complex>> spectra(const std::string& devices, std::atomic<int>& made) {
  // The plan that is made is the stream's; the host's needs none.
  const LibraryCall<std::optional<FftPlan>> call{
      .name = "fft",
      .cpu = [](std::optional<FftPlan>&, const Arguments& a) { transform_columns(a.operands[0]); },
      .cuda =
          [](std::optional<FftPlan>& plan, const Arguments& a) {
            ASSERT_EQ(a.operands[0].ld, length);
            plan->transform(a.operands[0].data);
          }};
  Pipeline pipeline({.memory = "16MiB", .devices = devices});
  pipeline.source(fill).library(call, per_stream([&made](const Arguments& a) {
                                  ++made;
                                  return a.stream ? std::optional<FftPlan>(a.stream) : std::nullopt;
                                }),
                                {updates("x")});
  std::vector<std::vector<Complex>> found;
  while (const auto chunk = pipeline.next()) {
    const auto values = chunk->values<Complex>("x");
    found.emplace_back(values.begin(), values.end());
  }
  return found;
}

TEST(StreamLibrary, CufftOnEachStreamAsTheHost) {
  if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
  if (!cufft().absence().empty()) GTEST_SKIP() << "no cuFFT: " << cufft().absence();
  std::atomic<int> plans{0};
  std::atomic<int> unused{0};
  const auto on_gpus = spectra("cuda", plans);
  const auto on_host = spectra("cpu:2", unused);
  ASSERT_EQ(on_gpus.size(), chunks);
  ASSERT_EQ(on_host.size(), chunks);
  EXPECT_GE(plans, 1);
  for (std::size_t n = 0; n < chunks; ++n) {
    float largest = 0;
    float wrong = 0;
    for (std::size_t i = 0; i < on_host[n].size(); ++i) {
      largest = std::max(largest, std::abs(on_host[n][i]));
      wrong = std::max(wrong, std::abs(on_host[n][i] - on_gpus[n][i]));
    }
    EXPECT_GT(largest, 0) << "chunk " << n;
    EXPECT_LT(wrong, 1e-5F * largest) << "chunk " << n;
  }
}

// ---- cuBLAS: products of a constant with chunks of unequal size, between two other kernels.

constinit auto create = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCreate);
constinit auto destroy = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasDestroy);
constinit auto set_stream = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasSetStream);
constinit auto multiply = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasDgemm);

constexpr std::int64_t order = 48;

struct Blas {
  explicit Blas(void* stream) {
    cuda::check(create(&handle), "cublasCreate");
    cuda::check(set_stream(handle, static_cast<cudaStream_t>(stream)), "cublasSetStream");
  }
  Blas(Blas&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  ~Blas() {
    if (handle) destroy(handle);
  }
  cublasHandle_t handle = nullptr;
};

void product(const Arguments& a) {
  const View& w = a.operands[0];
  const View& x = a.operands[1];
  const View& y = a.operands[2];
  for (std::int64_t c = 0; c < y.cols; ++c)
    for (std::int64_t r = 0; r < y.rows; ++r) {
      double sum = 0;
      for (std::int64_t k = 0; k < w.cols; ++k)
        sum += w.as<double>()[r + k * w.ld] * x.as<double>()[k + c * x.ld];
      y.as<double>()[r + c * y.ld] = sum;
    }
}

std::vector<std::vector<double>> products(const std::string& devices) {
  std::vector<double> weights(static_cast<std::size_t>(order * order));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<double>(i % 23) - 11;
  const LibraryCall<std::optional<Blas>> call{
      .name = "product",
      .cpu = [](std::optional<Blas>&, const Arguments& a) { product(a); },
      .cuda =
          [](std::optional<Blas>& blas, const Arguments& a) {
            const View& w = a.operands[0];
            const View& x = a.operands[1];
            const View& y = a.operands[2];
            const double one = 1;
            const double zero = 0;
            cuda::check(
                multiply(blas->handle, CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(y.rows),
                         static_cast<int>(y.cols), static_cast<int>(w.cols), &one, w.as<double>(),
                         static_cast<int>(w.ld), x.as<double>(), static_cast<int>(x.ld), &zero,
                         y.as<double>(), static_cast<int>(y.ld)),
                "cublasDgemm");
          }};
  const auto like_x = [](const Chunk& chunk) {
    return FieldShape{order, chunk["x"].cols, DType::float64};
  };
  Pipeline pipeline({.memory = "16MiB", .devices = devices});
  pipeline
      .source([](Chunk& chunk) {
        if (chunk.number() == chunks) return false;
        const auto n = static_cast<std::int64_t>(chunk.number());
        const View x = chunk.add("x", order, 1 + n * 37 % 101, DType::float64);
        for (std::int64_t i = 0; i < x.rows * x.cols; ++i)
          x.as<double>()[i] = static_cast<double>((i + n) % 19 - 9);
        return true;
      })
      .library(call, per_stream([](const Arguments& a) {
                 return a.stream ? std::optional<Blas>(a.stream) : std::nullopt;
               }),
               {constant("w", {weights.data(), order, order, order, DType::float64}), reads("x"),
                writes("y", like_x)});
  std::vector<std::vector<double>> found;
  while (const auto chunk = pipeline.next()) {
    const auto values = chunk->values<double>("y");
    found.emplace_back(values.begin(), values.end());
  }
  return found;
}

TEST(StreamLibrary, CublasOnEachStreamAsTheHost) {
  if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
  const auto on_gpus = products("cuda");
  ASSERT_EQ(on_gpus.size(), chunks);
  EXPECT_EQ(on_gpus, products("cpu:2")) << "integers, whose sums are exact";
}

}  // namespace
}  // namespace quadriga::kernels
