// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_parts.cpp: kernels alone, copies alone, problems too small to be cut.
#include "gpu_parts.h"

#include <quadriga/engine.h>
#include <quadriga/linalg.h>

#include <array>
#include <cmath>

#include "device/factory.h"
#include "gpu.h"
#include "linalg/kernels/codelets.h"
#include "line.h"

namespace quadriga::bench {
namespace {

using linalg::MatrixView;
using linalg::Op;
using linalg::Uplo;

constexpr linalg::Coefficient one{1, 0};
constexpr linalg::Coefficient minus_one{-1, 0};

double power(double base, int exponent) { return std::pow(base, exponent); }

/// One stream of the first device, and square tiles there.
class Alone {
 public:
  Alone(const Machine& machine, std::int64_t order)
      : backend_(make_backend(machine)),
        stream_(backend_->create_stream(0, StreamKind::compute)),
        order_(order) {}

  View tile() {
    const auto bytes = static_cast<std::size_t>(order_ * order_) * sizeof(double);
    return {backend_->allocate(0, bytes), order_, order_, order_, DType::float64};
  }
  void fill(const View& view) {
    kernels::RandomMatrix random{.seed = 5, .on_diagonal = static_cast<double>(order_)};
    random.hermitian = true;
    run(kernels::random_codelet(DType::float64), {view}, random, 1);
  }
  /// Seconds of one of `count` launches queued one after the other.
  template <class Params>
  double run(const Codelet& codelet, std::initializer_list<View> operands, const Params& params,
             int count) {
    const std::vector<View> views(operands);
    Launch launch;
    launch.kernel = &codelet.cuda;
    launch.arguments.operands = views;
    launch.arguments.params = std::as_bytes(std::span(&params, 1));
    const double begin = now();
    for (int i = 0; i < count; ++i) backend_->launch(stream_, launch);
    std::array<Completion, 16> ended;
    for (int left = count; left > 0;) {
      const std::size_t some = backend_->next_completion(ended, never);
      for (std::size_t i = 0; i < some; ++i)
        if (ended[i].error) std::rethrow_exception(ended[i].error);
      left -= static_cast<int>(some);
    }
    return (now() - begin) / count;
  }

 private:
  std::unique_ptr<Backend> backend_;
  StreamId stream_;
  std::int64_t order_;
};

void print_kernel(const char* name, std::int64_t order, double seconds, double flops) {
  Line(name)
      .add("tile", static_cast<double>(order))
      .add("microseconds", seconds * 1e6)
      .add("tflops", flops / seconds * 1e-12)
      .print();
}

/// Seconds of copying tiles of 8 MiB by tasks that do nothing with them.
class TileCopies {
 public:
  explicit TileCopies(const Machine& machine) : matrix_(rows, true) {
    EngineOptions options;
    options.machine = machine;
    engine_.emplace(options);
    for (Codelet* const codelet : {&reads_, &writes_}) {
      codelet->name = "nothing";
      codelet->access = {codelet == &reads_ ? Access::read : Access::write};
      codelet->cuda = [](const Arguments&) {};
      codelet->cost = [](const Arguments&) { return Cost{}; };
    }
  }
  void add() {
    for (std::int64_t j = 0; j < rows; j += columns)
      tiles_.push_back(
          engine_->data(matrix_.data() + j * rows, rows, columns, rows, DType::float64));
    engine_->wait();
  }
  void remove() {
    engine_->remove(tiles_);
    tiles_.clear();
  }
  double touch(bool out, DeviceId device) {
    SubmitOptions where;
    where.device = device;
    const double begin = now();
    for (const Data tile : tiles_) {
      engine_->submit(out ? writes_ : reads_, {{tile, out ? Access::write : Access::read}}, where);
      if (out) engine_->final(tile);
    }
    engine_->wait();
    return now() - begin;
  }
  static double bytes() { return static_cast<double>(rows * rows) * sizeof(double); }
  static constexpr std::int64_t rows = 16384;
  static constexpr std::int64_t columns = 64;

 private:
  HostMatrix matrix_;
  std::optional<Engine> engine_;
  Codelet reads_;
  Codelet writes_;
  std::vector<Data> tiles_;
};

void print_copies(const char* name, const std::vector<double>& seconds, double reference) {
  const double value = TileCopies::bytes() / median(seconds);
  Line(name)
      .add("gb_a_second", value * 1e-9)
      .add("plain_gb_a_second", reference * 1e-9)
      .add("ratio", value / reference)
      .print();
}

template <class Work>
double median_of(long long repeat, Work work) {
  std::vector<double> seconds;
  for (long long i = 0; i <= repeat; ++i) {
    const double begin = now();
    work();
    if (i > 0) seconds.push_back(now() - begin);
  }
  return median(seconds);
}

void print_small(const char* name, std::int64_t n, double ours, double theirs) {
  Line(name)
      .add("n", static_cast<double>(n))
      .add("milliseconds", ours * 1e3)
      .add("one_call_milliseconds", theirs * 1e3)
      .add("ratio", theirs / ours)
      .print();
}

}  // namespace

void kernel_rates(const Machine& machine, const Settings& settings) {
  const std::int64_t n = settings.integer("tile", 2048);
  const int count = static_cast<int>(settings.integer("repeat", 10));
  Alone alone(machine, n);
  const View a = alone.tile();
  const View b = alone.tile();
  const View c = alone.tile();
  for (const View& view : {a, b, c}) alone.fill(view);
  const double order = static_cast<double>(n);
  const auto measure = [&](const char* name, const Codelet& codelet,
                           std::initializer_list<View> operands, const auto& params, double flops) {
    alone.run(codelet, operands, params, 2);
    print_kernel(name, n, alone.run(codelet, operands, params, count), flops);
  };
  measure("gemm NN", kernels::gemm_codelet(DType::float64), {a, b, c},
          kernels::GemmParams{minus_one, one, Op::none, Op::none}, 2 * power(order, 3));
  measure("gemm NT", kernels::gemm_codelet(DType::float64), {a, b, c},
          kernels::GemmParams{minus_one, one, Op::none, Op::conjugate}, 2 * power(order, 3));
  measure("syrk", kernels::herk_codelet(DType::float64), {a, c},
          kernels::SyrkParams{minus_one, one, Uplo::lower, Op::none}, power(order, 3));
  alone.fill(b);
  measure("trsm", kernels::trsm_codelet(DType::float64), {a, b},
          kernels::TrsmParams{one, kernels::Side::right, Uplo::lower, Op::conjugate},
          power(order, 3));
  double seconds = 0;
  for (int i = -1; i < count; ++i) {
    alone.fill(c);
    const double once =
        alone.run(kernels::potrf_codelet(DType::float64), {c}, kernels::PotrfParams{}, 1);
    if (i >= 0) seconds += once / count;
  }
  print_kernel("potrf", n, seconds, power(order, 3) / 3);
}

void engine_copies(const Machine& machine, const Settings& settings) {
  const long long repeat = settings.integer("repeat", 3);
  const auto tile = static_cast<std::size_t>(TileCopies::rows * TileCopies::columns) * 8;
  constexpr int plain = 256;
  TileCopies copies(machine);
  for (const bool out : {false, true}) {
    std::vector<double> seconds;
    for (long long i = 0; i <= repeat; ++i) {
      copies.add();
      const double once = copies.touch(out, 0);
      if (i > 0) seconds.push_back(once);
      copies.remove();
    }
    print_copies(out ? "copies d2h" : "copies h2d", seconds,
                 static_cast<double>(tile) / plain_copy(!out, tile, plain));
  }
  if (settings.integer("gpus", 1) < 2) return;
  std::vector<double> seconds;
  for (long long i = 0; i <= repeat; ++i) {
    copies.add();
    copies.touch(false, 0);
    const double once = copies.touch(false, 1);
    if (i > 0) seconds.push_back(once);
    copies.remove();
  }
  print_copies("copies peer", seconds, static_cast<double>(tile) / plain_peer_copy(tile, plain));
}

void small_problems(const Machine& machine, const Settings& settings) {
  const std::int64_t n = settings.integer("n", 4096);
  const long long repeat = settings.integer("repeat", 7);
  EngineOptions options;
  options.machine = machine;
  Engine engine(options);
  const HostMatrix a(n, true);
  const HostMatrix b(n, true);
  const HostMatrix c(n, true);
  fill(engine, a, 1, true);
  fill(engine, b, 2, false);
  const auto view = [&](const HostMatrix& matrix) {
    return MatrixView::columns(matrix.data(), n, n, DType::float64);
  };
  print_small("small gemm", n,
              median_of(repeat,
                        [&] {
                          linalg::matmul(engine, 1, view(a), linalg::Op::none, view(b),
                                         linalg::Op::none, 0, view(c));
                        }),
              one_call_gemm(a, b, c, static_cast<int>(repeat)));
  print_small("small potrf", n,
              median_of(repeat,
                        [&] {
                          linalg::cholesky(engine, view(a), view(c), linalg::Uplo::lower,
                                           linalg::Other::leave);
                        }),
              one_call_potrf(a, c, static_cast<int>(repeat)));
}

}  // namespace quadriga::bench
