// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/potrf.cpp: Cholesky factors of tiles: cost, workspace, division, variants for
// the host and streams.
#include "linalg/kernels/potrf.h"

#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/divisions.h"
#include "linalg/kernels/gemm.h"
#include "linalg/kernels/host_blas.h"
#include "linalg/kernels/stream_blas.h"
#include "linalg/kernels/syrk.h"
#include "linalg/kernels/trsm.h"

#include <cmath>

// The Fortran LAPACK inside OpenBLAS, which ships no header for it in Debian.
extern "C" {
void spotrf_(const char* uplo, const blasint* n, float* a, const blasint* lda, blasint* info);
void dpotrf_(const char* uplo, const blasint* n, double* a, const blasint* lda, blasint* info);
void cpotrf_(const char* uplo, const blasint* n, std::complex<float>* a, const blasint* lda,
             blasint* info);
void zpotrf_(const char* uplo, const blasint* n, std::complex<double>* a, const blasint* lda,
             blasint* info);
}

namespace quadriga::kernels {
namespace {

using enum Access;

Cost potrf_cost(const Arguments& arguments) {
  const auto order = static_cast<double>(arguments.operands[0].rows);
  return cost_of(potrf_names, arguments, order * order * order);
}

/// The first line of a workspace is for the library's own word.
constexpr std::size_t word_bytes = 256;

/// What cuSOLVER wants: a word for each block of 32 x 32 elements, and less than a KiB beside them
/// (decision 418). It says so only where its device is; plans need the same figure everywhere,
/// before a task has a device. A library that wants more gets scratch of its stream (queue_potrf).
std::size_t potrf_workspace(const Arguments& arguments) {
  constexpr std::size_t block = 32;
  constexpr std::size_t beside = 1024;
  const auto order = static_cast<std::size_t>(arguments.operands[0].rows);
  if (order == 0) return 0;
  const std::size_t blocks = (order + block - 1) / block;
  return word_bytes + beside + blocks * blocks * sizeof(int);
}

void divide_potrf(const Arguments& arguments, Division& division) {
  const auto params = arguments.param<PotrfParams>();
  const View& a = arguments.operands[0];
  const std::vector<FinePart> parts = fine_parts(a.rows);
  if (!params.fine || parts.size() < 2) return;
  const bool lower = params.uplo == Uplo::lower;
  const Op near = lower ? Op::none : Op::conjugate;
  const Op far = lower ? Op::conjugate : Op::none;
  const auto block = [&](std::size_t i, std::size_t j) {
    return lower ? block_of(a, parts[i], parts[j]) : block_of(a, parts[j], parts[i]);
  };
  const TrsmParams solve{{1, 0}, lower ? Side::right : Side::left, params.uplo, Op::conjugate};
  const SyrkParams square{{-1, 0}, {1, 0}, params.uplo, near};
  const GemmParams product{{-1, 0}, {1, 0}, near, far};
  for (std::size_t k = 0; k < parts.size(); ++k) {
    division.add(potrf_codelet(a.dtype), {block(k, k)},
                 PotrfParams{params.first + parts[k].first, params.uplo});
    for (std::size_t i = k + 1; i < parts.size(); ++i)
      division.add(trsm_codelet(a.dtype), {block(k, k), block(i, k)}, solve);
    for (std::size_t i = k + 1; i < parts.size(); ++i) {
      division.add(herk_codelet(a.dtype), {block(i, k), block(i, i)}, square);
      for (std::size_t j = k + 1; j < i; ++j)
        division.add(gemm_codelet(a.dtype),
                     {block(lower ? i : j, k), block(lower ? j : i, k), block(i, j)}, product);
    }
  }
}

/// OpenBLAS doesn't notice a NaN on the diagonal, and reports success.
template <class T>
int first_nan_on_diagonal(KernelTile<T> a) {
  for (int i = 0; i < a.rows; ++i)
    if (std::isnan(std::real(a(i, i)))) return i + 1;
  return 0;
}

template <class T>
void run_potrf(const Arguments& arguments) {
  const auto params = arguments.param<PotrfParams>();
  const int info = potrf(params.uplo, tile<T>(arguments, 0));
  if (info > 0) throw NotPositiveDefinite(params.first + info);
}

/// Writes what potrf() returns to `*info`, in host memory that the device can write.
template <class T>
void queue_potrf(StreamBlas<T>& on, Uplo uplo, KernelTile<T> a, std::span<std::byte> workspace,
                 int* info) {
  require(a.rows == a.cols, "potrf: A must be square");
  *info = 0;
  if (a.rows == 0) return;
  const auto bytes = on.potrf_bytes(uplo, a);
  const std::size_t needed = word_bytes + bytes.device;
  std::byte* const memory =
      needed <= workspace.size() ? workspace.data() : on.solver_scratch(needed);
  auto* const device_info = reinterpret_cast<int*>(memory);
  on.potrf(uplo, a, {memory + word_bytes, bytes.device}, {on.host_scratch(bytes.host), bytes.host},
           device_info);
  on.report_minor(a, device_info, info);
}

template <class T>
void run_potrf(const Arguments& arguments, StreamBlas<T>& on) {
  const auto params = arguments.param<PotrfParams>();
  require(arguments.on_end != nullptr, "potrf: on a stream its result is known at its end only");
  const auto words = on.words();
  int* const info = words->take();
  *arguments.on_end = [words, info, first = params.first] {
    const int minor = *info;
    words->give_back(info);
    if (minor > 0) throw NotPositiveDefinite(first + minor);
  };
  queue_potrf(on, params.uplo, tile<T>(arguments, 0), arguments.workspace, info);
}

}  // namespace

std::span<const KernelSpec> potrf_kernels() {
  static const KernelSpec kernels[]{{
      .name = "potrf",
      .access = {update},
      .params_bytes = sizeof(PotrfParams),
      .cost = potrf_cost,
      .host = on_host([]<class T>(const Arguments& a) { run_potrf<T>(a); }),
      .stream = on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) { run_potrf(a, on); }),
      .codelet = potrf_codelet,
      .divide = divide_potrf,
      .workspace = potrf_workspace,
  }};
  return kernels;
}

const Codelet& potrf_codelet(DType type) {
  static const Family family(potrf_kernels()[0]);
  return family[type];
}

template <class T>
int potrf(Uplo uplo, KernelTile<T> a) {
  require(a.rows == a.cols, "potrf: A must be square");
  if (a.rows == 0) return 0;
  const char letter = uplo == Uplo::lower ? 'L' : 'U';
  const blasint n = a.rows;
  const blasint ld = a.ld;
  blasint info = 0;
  of_type<T>(spotrf_, dpotrf_, cpotrf_, zpotrf_)(&letter, &n, a.data, &ld, &info);
  const int nan = first_nan_on_diagonal(a);
  if (nan == 0) return info;
  return info == 0 || nan < info ? nan : info;
}

template int potrf<float>(Uplo, KernelTile<float>);
template int potrf<double>(Uplo, KernelTile<double>);
template int potrf<std::complex<float>>(Uplo, KernelTile<std::complex<float>>);
template int potrf<std::complex<double>>(Uplo, KernelTile<std::complex<double>>);

}  // namespace quadriga::kernels
