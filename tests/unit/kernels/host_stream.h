// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/host_stream.h: a StreamBlas that computes on the host at once, and counts: so
// that variants for streams run where there is no GPU.
#pragma once

#include "linalg/kernels/codelets.h"
#include "linalg/kernels/region.h"
#include "linalg/kernels/stream_blas.h"
#include "linalg/kernels/tile_measure.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <map>
#include <string>
#include <vector>

namespace quadriga::kernels {

class HostWords final : public ResultWords {
 public:
  int* take() override { return ++in_use, &word_; }
  void give_back(int*) override { --in_use; }
  int in_use = 0;

 private:
  int word_ = -1;
};

template <class T>
class HostStream final : public StreamBlas<T> {
 public:
  using typename StreamBlas<T>::Bytes;
  using typename StreamBlas<T>::Real;

  int most_by_substitution = 0;
  bool has_memory = true;
  std::map<std::string, int> calls;
  std::shared_ptr<HostWords> host_words = std::make_shared<HostWords>();

  void copy(Op op, KernelTile<const T> a, KernelTile<T> c, TileRegion region) override {
    ++calls["copy"];
    kernels::copy<T>(op, a, c, region);
  }
  void scale(T alpha, KernelTile<T> c, TileRegion region) override {
    kernels::scale<T>(alpha, c, region);
  }
  void axpby(Op op, T alpha, KernelTile<const T> a, T beta, KernelTile<T> c,
             TileRegion region) override {
    kernels::axpby<T>(op, alpha, a, beta, c, region);
  }
  void set(T value, T on_diagonal, KernelTile<T> c, TileRegion region) override {
    kernels::set<T>(value, on_diagonal, c, region);
  }
  void add_diagonal(T value, KernelTile<T> c, std::int64_t diagonal) override {
    kernels::add_diagonal<T>(value, c, diagonal);
  }
  void mirror(Uplo stored, Op op, KernelTile<T> c) override { kernels::mirror<T>(stored, op, c); }
  void fill_random(const RandomMatrix& random, KernelTile<T> c) override {
    kernels::fill_random<T>(random, c);
  }
  void covariance(const CovarianceTile& place, KernelTile<T> c) override {
    if constexpr (!is_complex<T>) place.covariance->fill(place.first_row, place.first_col, c);
  }
  void measure(Measure, TileRegion region, KernelTile<const T> a, KernelTile<double> out) override {
    out(0, 0) = max_abs<T>(a, region);
  }
  void make_diagonal_real(KernelTile<T> c) override {
    for (int i = 0; i < c.rows; ++i) c(i, i) = std::real(c(i, i));
  }

  void gemm(Op op_a, Op op_b, T alpha, KernelTile<const T> a, KernelTile<const T> b, T beta,
            KernelTile<T> c, bool) override {
    ++calls["gemm"];
    EXPECT_FALSE(c.empty() || a.empty() || b.empty());
    kernels::gemm<T>(op_a, op_b, alpha, a, b, beta, c);
  }
  void syrk(Uplo uplo, Op op, T alpha, KernelTile<const T> a, T beta, KernelTile<T> c,
            bool) override {
    ++calls["syrk"];
    kernels::syrk<T>(uplo, op, alpha, a, beta, c);
  }
  void herk(Uplo uplo, Op op, Real alpha, KernelTile<const T> a, Real beta, KernelTile<T> c,
            bool) override {
    ++calls["herk"];
    kernels::herk<T>(uplo, op, alpha, a, beta, c);
  }
  void trsm(Side side, Uplo uplo, Op op, Diag diag, T alpha, KernelTile<const T> a,
            KernelTile<T> b) override {
    ++calls["trsm"];
    kernels::trsm<T>(side, uplo, op, diag, alpha, a, b);
  }
  int most_substituted() override { return most_by_substitution; }
  void substitute(Side side, Uplo uplo, Op op, Diag diag, KernelTile<const T> a,
                  KernelTile<T> b) override {
    ++calls["substitute"];
    EXPECT_LE(a.rows, most_by_substitution);
    kernels::trsm<T>(side, uplo, op, diag, T(1), a, b);
  }

  Bytes potrf_bytes(Uplo, KernelTile<T> a) override {
    return {static_cast<std::size_t>(a.rows) * sizeof(T), 17};
  }
  /// Overwrites its workspaces, as a library may.
  void potrf(Uplo uplo, KernelTile<T> a, std::span<std::byte> device, std::span<std::byte> host,
             int* info) override {
    ++calls["potrf"];
    EXPECT_EQ(device.size(), potrf_bytes(uplo, a).device);
    EXPECT_EQ(host.size(), potrf_bytes(uplo, a).host);
    *info = kernels::potrf<T>(uplo, a);
    std::ranges::fill(device, std::byte{0xff});
    std::ranges::fill(host, std::byte{0xff});
  }
  void report_minor(KernelTile<const T>, const int* found, int* info) override { *info = *found; }

  std::byte* try_scratch(std::size_t bytes) override {
    return has_memory ? sized(device_, bytes) : nullptr;
  }
  std::byte* solver_scratch(std::size_t bytes) override {
    ++calls["solver_scratch"];
    return sized(device_, bytes);
  }
  std::byte* host_scratch(std::size_t bytes) override { return sized(host_, bytes); }
  std::shared_ptr<ResultWords> words() override { return host_words; }

 private:
  static std::byte* sized(std::vector<std::byte>& memory, std::size_t bytes) {
    if (bytes > memory.size()) memory.resize(bytes);
    return memory.data();
  }

  std::vector<std::byte> device_;
  std::vector<std::byte> host_;
};

}  // namespace quadriga::kernels
