// SPDX-License-Identifier: BSD-3-Clause
// bench/division.cpp: what dividing tasks costs, and what it gains where few coarse tasks are left.
#include <fmt/format.h>
#include <quadriga/division.h>
#include <quadriga/linalg.h>

#include <array>
#include <functional>

#include "base/config.h"
#include "benchmarks.h"
#include "graph/subgraph.h"
#include "linalg/kernels/codelets.h"
#include "line.h"
#include "matrices.h"

namespace quadriga::bench {
namespace {

using linalg::Op;
using linalg::Uplo;

constexpr DType type = DType::float64;
constexpr kernels::PotrfParams factor{};
constexpr kernels::TrsmParams solve{{1, 0}, kernels::Side::right, Uplo::lower, Op::conjugate};
constexpr kernels::SyrkParams square{{-1, 0}, {1, 0}, Uplo::lower, Op::none};
constexpr kernels::GemmParams product{{-1, 0}, {1, 0}, Op::none, Op::conjugate};

enum Kind : std::size_t { potrf, trsm, syrk, gemm };

/// Blocks of b elements of a tile.
struct Blocks {
  const View& tile;
  std::int64_t b;

  std::int64_t count() const { return (tile.rows + b - 1) / b; }
  View operator()(std::int64_t i, std::int64_t j) const {
    return part_of(tile, i * b, j * b, std::min(b, tile.rows - i * b),
                   std::min(b, tile.cols - j * b));
  }
};

// How each kernel of a Cholesky factorization divides on blocks of b elements.

void divide_potrf(const Arguments& arguments, Division& division, std::int64_t b) {
  const Blocks a{arguments.operands[0], b};
  for (std::int64_t k = 0; k < a.count(); ++k) {
    division.add(kernels::potrf_codelet(type), {a(k, k)}, factor);
    for (std::int64_t i = k + 1; i < a.count(); ++i)
      division.add(kernels::trsm_codelet(type), {a(k, k), a(i, k)}, solve);
    for (std::int64_t j = k + 1; j < a.count(); ++j) {
      division.add(kernels::syrk_codelet(type), {a(j, k), a(j, j)}, square);
      for (std::int64_t i = j + 1; i < a.count(); ++i)
        division.add(kernels::gemm_codelet(type), {a(i, k), a(j, k), a(i, j)}, product);
    }
  }
}

void divide_trsm(const Arguments& arguments, Division& division, std::int64_t b) {
  const Blocks triangle{arguments.operands[0], b};
  const Blocks x{arguments.operands[1], b};
  for (std::int64_t k = 0; k < triangle.count(); ++k)
    for (std::int64_t i = 0; i < x.count(); ++i) {
      division.add(kernels::trsm_codelet(type), {triangle(k, k), x(i, k)}, solve);
      for (std::int64_t j = k + 1; j < triangle.count(); ++j)
        division.add(kernels::gemm_codelet(type), {x(i, k), triangle(j, k), x(i, j)}, product);
    }
}

void divide_syrk(const Arguments& arguments, Division& division, std::int64_t b) {
  const Blocks a{arguments.operands[0], b};
  const Blocks c{arguments.operands[1], b};
  for (std::int64_t k = 0; k < a.count(); ++k)
    for (std::int64_t j = 0; j < c.count(); ++j) {
      division.add(kernels::syrk_codelet(type), {a(j, k), c(j, j)}, square);
      for (std::int64_t i = j + 1; i < c.count(); ++i)
        division.add(kernels::gemm_codelet(type), {a(i, k), a(j, k), c(i, j)}, product);
    }
}

void divide_gemm(const Arguments& arguments, Division& division, std::int64_t b) {
  const Blocks left{arguments.operands[0], b};
  const Blocks right{arguments.operands[1], b};
  const Blocks c{arguments.operands[2], b};
  for (std::int64_t k = 0; k < left.count(); ++k)
    for (std::int64_t j = 0; j < c.count(); ++j)
      for (std::int64_t i = 0; i < c.count(); ++i)
        division.add(kernels::gemm_codelet(type), {left(i, k), right(j, k), c(i, j)}, product);
}

/// Codelets of the four kernels; with a block, all their tasks are divided by it.
std::array<Codelet, 4> codelets(std::int64_t block) {
  std::array<Codelet, 4> made{kernels::potrf_codelet(type), kernels::trsm_codelet(type),
                              kernels::syrk_codelet(type), kernels::gemm_codelet(type)};
  using Divides = void (*)(const Arguments&, Division&, std::int64_t);
  constexpr std::array<Divides, 4> how{divide_potrf, divide_trsm, divide_syrk, divide_gemm};
  for (std::size_t kind = 0; block > 0 && kind < made.size(); ++kind)
    set_division(
        made[kind],
        [divide = how[kind], block](const Arguments& arguments, Division& division) {
          divide(arguments, division, block);
        },
        Divided::always);
  return made;
}

/// A Cholesky factorization of a matrix by tiles, right-looking.
class Factorization {
 public:
  Factorization(Engine& engine, const Matrix& matrix, std::int64_t tile, std::int64_t block)
      : engine_(engine), codelets_(codelets(block)), count_((matrix.order() + tile - 1) / tile) {
    const std::int64_t n = matrix.order();
    for (std::int64_t j = 0; j < count_; ++j)
      for (std::int64_t i = 0; i < count_; ++i)
        tiles_.push_back(engine.data(matrix.data() + i * tile + j * tile * n,
                                     std::min(tile, n - i * tile), std::min(tile, n - j * tile), n,
                                     type));
  }
  ~Factorization() { engine_.remove(tiles_); }

  void run() {
    constexpr Access update = Access::update;
    for (std::int64_t k = 0; k < count_; ++k) {
      engine_.submit(codelets_[potrf], {{at(k, k), update}}, factor, first(k, k, k));
      for (std::int64_t i = k + 1; i < count_; ++i)
        engine_.submit(codelets_[trsm], {{at(k, k)}, {at(i, k), update}}, solve, first(i, k, k));
      for (std::int64_t j = k + 1; j < count_; ++j) {
        engine_.submit(codelets_[syrk], {{at(j, k)}, {at(j, j), update}}, square, first(j, j, k));
        for (std::int64_t i = j + 1; i < count_; ++i)
          engine_.submit(codelets_[gemm], {{at(i, k)}, {at(j, k)}, {at(i, j), update}}, product,
                         first(i, j, k));
      }
    }
    engine_.wait();
  }

 private:
  Data at(std::int64_t i, std::int64_t j) const {
    return tiles_[static_cast<std::size_t>(i + j * count_)];
  }
  /// What is nearest to the diagonal and the first columns goes first.
  SubmitOptions first(std::int64_t i, std::int64_t j, std::int64_t k) const {
    SubmitOptions options;
    options.priority = static_cast<std::int32_t>(3 * count_ - i - j - k);
    return options;
  }

  Engine& engine_;
  const std::array<Codelet, 4> codelets_;
  const std::int64_t count_;
  std::vector<Data> tiles_;
};

EngineOptions cores(const Settings& settings) {
  EngineOptions options;
  options.devices = settings.text("devices", "cpu:2");
  return options;
}

/// Two ways of the same work in turn: seconds of each by round.
struct Contest {
  std::function<void()> prepare;
  std::array<std::function<void()>, 2> ways;

  std::array<std::vector<double>, 2> run(long long repeat) const {
    std::array<std::vector<double>, 2> seconds;
    for (long long round = 0; round <= repeat; ++round)
      for (std::size_t way = 0; way < ways.size(); ++way) {
        prepare();
        const double begin = now();
        ways[way]();
        if (round > 0) seconds[way].push_back(now() - begin);  // not the first, which makes threads
      }
    return seconds;
  }
};

Matrix positive(std::int64_t n) {
  Matrix a(n);
  a.fill({.seed = 4, .on_diagonal = static_cast<double>(n), .hermitian = true});
  return a;
}

/// Cholesky by coarse tiles which are all divided, beside the fine tiles alone (W. Wu,
/// dissertation, University of Tennessee, 2017, figure 3.7).
void overhead(const Settings& settings) {
  const std::int64_t n = settings.integer("n", 3600);
  const std::int64_t tile = settings.integer("tile", 900);
  const std::int64_t block = settings.integer("block", 180);
  Engine engine(cores(settings));
  const Matrix a = positive(n);
  Matrix result(n);
  Factorization coarse(engine, result, tile, block);
  Matrix beside(n);
  Factorization fine(engine, beside, block, 0);
  const Contest contest{[&] {
                          result.copy_from(a);
                          beside.copy_from(a);
                        },
                        {[&] { coarse.run(); }, [&] { fine.run(); }}};
  const auto seconds = contest.run(settings.integer("repeat", 9));
  contest.prepare();
  coarse.run();
  const double flops = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / 3;
  Line("division-overhead")
      .add("value", 100 * (std::ranges::min(seconds[0]) / std::ranges::min(seconds[1]) - 1))
      .add("unit", "%")
      .add("bound", 0)
      .add("median", 100 * (median(seconds[0]) / median(seconds[1]) - 1))
      .add("divided", flops / std::ranges::min(seconds[0]) / 1e9)
      .add("fine_tiles", flops / std::ranges::min(seconds[1]) / 1e9)
      .add("n", static_cast<double>(n))
      .add("tile", static_cast<double>(tile))
      .add("block", static_cast<double>(block))
      .add("devices", engine.options().devices)
      .add("backward_error", factor_error(a, result))
      .print();
}

/// linalg's Cholesky by coarse tiles with and without division.
void tail(const Settings& settings) {
  const std::int64_t n = settings.integer("n", 4096);
  linalg::Options options;
  options.tile = settings.integer("tile", 1024);
  Engine divides(cores(settings));
  Config::global().set("divide", "false");
  Engine whole(cores(settings));
  const Matrix a = positive(n);
  Matrix result(n);
  const auto way = [&](Engine& engine, const char* divide) {
    return [&, divide] {
      Config::global().set("divide", divide);
      const auto view = linalg::MatrixView::columns(result.data(), n, n, type);
      linalg::cholesky(engine, view, view, Uplo::lower, linalg::Other::leave, options);
    };
  };
  const Contest contest{[&] { result.copy_from(a); }, {way(whole, "false"), way(divides, "true")}};
  const auto seconds = contest.run(settings.integer("repeat", 9));
  const double flops = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / 3;
  Line("division-tail")
      .add("value", flops / median(seconds[1]) / 1e9)
      .add("unit", "GFLOP/s")
      .add("whole", flops / median(seconds[0]) / 1e9)
      .add("gain", median(seconds[0]) / median(seconds[1]))
      .add("gain_of_fastest", std::ranges::min(seconds[0]) / std::ranges::min(seconds[1]))
      .add("n", static_cast<double>(n))
      .add("tile", static_cast<double>(options.tile))
      .add("devices", divides.options().devices)
      .add("backward_error", factor_error(a, result))
      .print();
}

/// Building and running fine tasks without work: those of a Cholesky factorization on `blocks`.
void fine_tasks(const Settings& settings) {
  const std::int64_t blocks = settings.integer("blocks", 16);
  const long long repeat = settings.integer("repeat", 200);
  Engine engine(cores(settings));
  Codelet one{.name = "one", .access = {Access::update}, .cpu = [](const Arguments&) {}};
  Codelet two{.name = "two", .access = {Access::read, Access::update}, .cpu = one.cpu};
  Codelet three{
      .name = "three", .access = {Access::read, Access::read, Access::update}, .cpu = one.cpu};
  double built = 0;
  double all = 0;
  std::int64_t tasks = 0;
  Codelet coarse{.name = "coarse", .access = {Access::update}, .cpu = one.cpu};
  double began_inside = 0;
  set_division(coarse, [&](const Arguments& arguments, Division& division) {
    began_inside = now();
    const Blocks a{arguments.operands[0], 1};
    for (std::int64_t k = 0; k < blocks; ++k) {
      division.add(one, {a(k, k)});
      for (std::int64_t i = k + 1; i < blocks; ++i) division.add(two, {a(k, k), a(i, k)});
      for (std::int64_t j = k + 1; j < blocks; ++j) {
        division.add(two, {a(j, k), a(j, j)});
        for (std::int64_t i = j + 1; i < blocks; ++i)
          division.add(three, {a(i, k), a(j, k), a(i, j)});
      }
    }
    built += now() - began_inside;
  });
  std::vector<double> elements(static_cast<std::size_t>(blocks * blocks));
  const Data tile = engine.data(elements.data(), blocks, blocks, blocks, type);
  for (long long round = 0; round < repeat; ++round) {
    engine.submit(coarse, {{tile, Access::update}});
    engine.wait();
    all += now() - began_inside;
    tasks += blocks * (blocks + 1) * (blocks + 2) / 6;
  }
  require(built > 0, "division --run tasks needs two cores, else nothing is divided");
  const double each = 1e9 / static_cast<double>(tasks);
  Line("division-tasks")
      .add("value", all * each)
      .add("unit", "ns/task")
      .add("bound", 0)
      .add("build", built * each)
      .add("run", (all - built) * each)
      .add("tasks", static_cast<double>(tasks))
      .add("devices", engine.options().devices)
      .print();
}

}  // namespace

void division(const Settings& settings) {
  const std::string run = settings.text("run", "overhead");
  if (run == "overhead") return overhead(settings);
  if (run == "tail") return tail(settings);
  require(run == "tasks", fmt::format("'{}': the runs are overhead, tail and tasks", run));
  fine_tasks(settings);
}

}  // namespace quadriga::bench
