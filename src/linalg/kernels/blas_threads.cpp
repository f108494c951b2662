// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/blas_threads.cpp: OpenBLAS's global number of threads, and room for its
// buffers.
#include "linalg/kernels/blas_threads.h"

#include <cblas.h>
#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <mutex>

#include "base/units.h"

extern "C" {
void dpotrf_(const char* uplo, const blasint* n, double* a, const blasint* lda, blasint* info);
}

namespace quadriga::kernels {
namespace {

/// OpenBLAS's largest, of its builds for many kinds of processors.
constexpr std::size_t buffer_bytes = std::size_t{128} << 20;

std::atomic<int> callers{0};
std::atomic<int> most_callers{0};  ///< At once, so far: so many buffers there are.

/// Makes OpenBLAS allocate a buffer unless one is free: the next look for room finds it taken.
void take_buffer() {
  const blasint order = 1;
  const char uplo = 'L';
  double one = 1;
  blasint info = 0;
  dpotrf_(&uplo, &order, &one, &order, &info);
}

/// Where the process's address space is limited, there is room for another buffer.
void require_room(int now) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (now <= most_callers.load(std::memory_order_relaxed)) return;
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  void* const room = limited ? ::mmap(nullptr, buffer_bytes + buffer_bytes / 8,
                                      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                             : nullptr;
  if (room == MAP_FAILED)
    fail(Errc::too_large,
         fmt::format("no {} of addresses for a buffer of the BLAS: the process may have {} "
                     "(ulimit -v)",
                     format_bytes(static_cast<double>(buffer_bytes)),
                     format_bytes(static_cast<double>(limit.rlim_cur))));
  if (room != nullptr) {
    ::munmap(room, buffer_bytes + buffer_bytes / 8);
    take_buffer();
  }
  most_callers.store(now, std::memory_order_relaxed);
}

}  // namespace

BlasCall::BlasCall() {
  const int now = callers.fetch_add(1, std::memory_order_relaxed) + 1;
  if (now <= most_callers.load(std::memory_order_relaxed)) return;
  try {
    require_room(now);
  } catch (...) {
    callers.fetch_sub(1, std::memory_order_relaxed);
    throw;
  }
}

BlasCall::~BlasCall() { callers.fetch_sub(1, std::memory_order_relaxed); }

void use_one_blas_thread() {
  static const bool once = (openblas_set_num_threads(1), true);
  static_cast<void>(once);
}

BlasThreads::BlasThreads(int threads) {
  require(threads >= 1, "BlasThreads: threads must be at least 1");
  use_one_blas_thread();
  before_ = openblas_get_num_threads();
  openblas_set_num_threads(threads);
}

BlasThreads::~BlasThreads() { openblas_set_num_threads(before_); }

int blas_threads() noexcept { return openblas_get_num_threads(); }

}  // namespace quadriga::kernels
