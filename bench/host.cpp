// SPDX-License-Identifier: BSD-3-Clause
// bench/host.cpp: products and Cholesky on this host, in turn with OpenBLAS's own threads.
#include <cblas.h>
#include <fmt/format.h>
#include <quadriga/linalg.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "benchmarks.h"
#include "linalg/kernels/blas_threads.h"
#include "line.h"
#include "matrices.h"

extern "C" void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info);

namespace quadriga::bench {
namespace {

using linalg::MatrixView;
using linalg::Op;
using linalg::Problem;

MatrixView view(const Matrix& matrix) {
  return MatrixView::columns(matrix.data(), matrix.order(), matrix.order(), DType::float64);
}

// What is measured: both ways of doing it, and what comes before each.
struct Contest {
  std::function<void()> prepare;
  std::function<void()> ours;
  std::function<void()> theirs;
};

struct Seconds {
  std::vector<double> ours;
  std::vector<double> theirs;
};

// Threads that have run out of work look for more for a while; the next run shall not feel it.
void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(200)); }

double seconds_of(const Contest& contest, const std::function<void()>& way) {
  contest.prepare();
  settle();
  const double begin = now();
  way();
  return now() - begin;
}

Seconds run_in_turn(const Contest& contest, long long repeat, int cores) {
  Seconds seconds;
  // The first round makes threads and buffers and isn't counted.
  for (long long round = 0; round <= repeat; ++round) {
    const double ours = seconds_of(contest, contest.ours);
    const kernels::BlasThreads threads(cores);
    const double theirs = seconds_of(contest, contest.theirs);
    if (round == 0) continue;
    seconds.ours.push_back(ours);
    seconds.theirs.push_back(theirs);
  }
  return seconds;
}

// Flops per second of one core in a product that fits its caches.
double core_rate() {
  constexpr int order = 768;
  Matrix a(order), b(order), c(order);
  for (Matrix* each : {&a, &b, &c}) each->fill({.seed = 5});
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    const double begin = now();
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, order, order, order, 1, a.data(), order,
                b.data(), order, 1, c.data(), order);
    best = std::min(best, now() - begin);
  }
  return 2.0 * order * order * order / best;
}

struct Result {
  double flops = 0;
  std::int64_t tile = 0;
  Seconds seconds = {};
  double error = 0;
  const char* reference = nullptr;
};

void print(const Engine& engine, std::int64_t n, int cores, const Result& result) {
  const auto rate = [&](double seconds) { return result.flops / seconds / 1e9; };
  Line("host")
      .add("value", rate(median(result.seconds.ours)))
      .add("unit", "GFLOP/s")
      .add("reference", result.reference)
      .add("reference_value", rate(median(result.seconds.theirs)))
      .add("bound", core_rate() * cores / 1e9)
      .add("n", static_cast<double>(n))
      .add("tile", static_cast<double>(result.tile))
      .add("devices", engine.options().devices)
      .add("fastest", rate(std::ranges::min(result.seconds.ours)))
      .add("reference_fastest", rate(std::ranges::min(result.seconds.theirs)))
      .add("backward_error", result.error)
      .print();
}

struct Asked {
  explicit Asked(const Settings& settings, Problem::Kind kind, std::int64_t parts)
      : n(settings.integer("n", 4096)), cores(Machine::host().devices.front().cores) {
    EngineOptions options;
    options.devices = settings.text("devices", "cpu");
    engine = std::make_unique<Engine>(options);
    const Problem problem{.kind = kind, .m = n, .n = n, .k = n, .accumulate = true};
    const std::int64_t most = std::max<std::int64_t>(1, n / parts);
    tile = settings.integer("tile", std::min(linalg::default_tile(*engine, problem), most));
    repeat = settings.integer("repeat", 7);
  }

  linalg::Options options() const {
    linalg::Options options;
    options.tile = tile;
    return options;
  }

  std::int64_t n;
  int cores;
  std::int64_t tile = 0;
  long long repeat = 0;
  std::unique_ptr<Engine> engine;
};

}  // namespace

void host_gemm(const Settings& settings) {
  const Asked asked(settings, Problem::Kind::matmul, 4);
  const int n = static_cast<int>(asked.n);
  Matrix a(n), b(n), before(n), c(n);
  a.fill({.seed = 1});
  b.fill({.seed = 2});
  before.fill({.seed = 3});
  Result result{.flops = 2.0 * n * n * n, .tile = asked.tile, .reference = "OpenBLAS dgemm"};
  Contest contest;
  contest.prepare = [&] { c.copy_from(before); };
  contest.ours = [&] {
    linalg::matmul(*asked.engine, 1, view(a), Op::none, view(b), Op::none, 1, view(c),
                   asked.options());
  };
  contest.theirs = [&] {
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.data(), n, b.data(), n, 1,
                c.data(), n);
  };
  result.seconds = run_in_turn(contest, asked.repeat, asked.cores);
  contest.prepare();
  contest.ours();
  result.error = product_error(a, b, before, c);
  print(*asked.engine, n, asked.cores, result);
}

void host_potrf(const Settings& settings) {
  const Asked asked(settings, Problem::Kind::cholesky, 8);
  const int n = static_cast<int>(asked.n);
  Matrix a(n), factor(n);
  a.fill({.seed = 4, .on_diagonal = static_cast<double>(n), .hermitian = true});
  Result result{.flops = 1.0 * n * n * n / 3, .tile = asked.tile, .reference = "OpenBLAS dpotrf"};
  Contest contest;
  contest.prepare = [&] { factor.copy_from(a); };
  contest.ours = [&] {
    linalg::cholesky(*asked.engine, view(factor), view(factor), linalg::Uplo::lower,
                     linalg::Other::leave, asked.options());
  };
  contest.theirs = [&] {
    int info = 0;
    dpotrf_("L", &n, factor.data(), &n, &info);
    require(info == 0, fmt::format("dpotrf returned {}", info));
  };
  result.seconds = run_in_turn(contest, asked.repeat, asked.cores);
  contest.prepare();
  contest.ours();
  result.error = factor_error(a, factor);
  print(*asked.engine, n, asked.cores, result);
}

}  // namespace quadriga::bench
