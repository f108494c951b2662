// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_orders.cpp: products and factorizations of orders drawn at random, on several numbers
// of GPUs, beside the line between the powers of two around each and beside fewer GPUs.
#include <fmt/format.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>
#include <quadriga/linalg.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <vector>

#include "base/random.h"
#include "gpu.h"
#include "gpu_parts.h"
#include "line.h"
#include "order_line.h"

namespace quadriga::bench {
namespace {

using linalg::MatrixView;

MatrixView view_of(const HostMatrix& matrix) {
  return MatrixView::columns(matrix.data(), matrix.order(), matrix.order(), DType::float64);
}

/// Uniform in their logarithms, sorted; every second of those drawn is odd.
std::vector<std::int64_t> draw(Random& random, long long count, double least, double most) {
  std::vector<std::int64_t> orders;
  for (long long i = 0; i < count; ++i) {
    const auto order =
        static_cast<std::int64_t>(least * std::pow(most / least, random.uniform())) & ~1;
    orders.push_back(order + i % 2);
  }
  std::ranges::sort(orders);
  return orders;
}

/// Flops a second by order.
using Rates = std::map<std::int64_t, double>;

/// The median of the runs of a few seconds behind the first, or the first if it took them.
template <class Prepare, class Work>
double seconds_of(Prepare prepare, Work work) {
  constexpr double enough = 1.5;
  constexpr std::size_t most_runs = 6;
  std::vector<double> runs;
  double first = 0;
  for (double spent = 0; spent < enough && runs.size() < most_runs;) {
    prepare();
    const double begin = now();
    work();
    const double seconds = now() - begin;
    spent += seconds;
    if (first == 0)
      first = seconds;
    else
      runs.push_back(seconds);
  }
  return runs.empty() ? first : median(std::move(runs));
}

/// What all orders work on: matrices of the largest.
struct Rooms {
  explicit Rooms(std::int64_t most) : a(most, true), b(most, true), c(most, true) {}
  HostMatrix a, b, c;
};

double product_rate(Engine& engine, const Rooms& rooms, std::int64_t order) {
  const HostMatrix a(rooms.a, order);
  const HostMatrix b(rooms.b, order);
  const HostMatrix c(rooms.c, order);
  fill(engine, a, 1, false);
  fill(engine, b, 2, false);
  const double seconds = seconds_of([] {},
                                    [&] {
                                      linalg::matmul(engine, 1.0, view_of(a), linalg::Op::none,
                                                     view_of(b), linalg::Op::none, 0.0, view_of(c));
                                    });
  return 2 * std::pow(static_cast<double>(order), 3) / seconds;
}

double factorization_rate(Engine& engine, const Rooms& rooms, std::int64_t order) {
  const HostMatrix a(rooms.a, order);
  const double seconds = seconds_of([&] { fill(engine, a, 3, true); },
                                    [&] {
                                      linalg::cholesky(engine, view_of(a), view_of(a),
                                                       linalg::Uplo::lower, linalg::Other::leave);
                                    });
  return std::pow(static_cast<double>(order), 3) / 3 / seconds;
}

struct Operation {
  const char* name;
  double (*rate)(Engine& engine, const Rooms& rooms, std::int64_t order);
};

constexpr Operation operations[] = {{"gemm", product_rate}, {"potrf", factorization_rate}};

}  // namespace

void drawn_orders(const Settings& settings, Machine (*machine_of)(int gpus)) {
  const auto gpus = static_cast<int>(settings.integer("gpus", 1));
  const double least = static_cast<double>(settings.integer("least", 6000, 2));
  const double most = static_cast<double>(settings.integer("most", 65536, 2));
  require(least <= most, fmt::format("--least {} is more than --most {}", least, most));
  Random random(static_cast<std::uint64_t>(settings.integer("seed", 1, 0)));
  const std::vector<std::int64_t> drawn = draw(random, settings.integer("count", 12), least, most);
  std::vector<std::int64_t> all = drawn;
  for (std::int64_t power = std::bit_floor(static_cast<std::uint64_t>(drawn.front()));;
       power *= 2) {
    all.push_back(power);
    if (power >= drawn.back()) break;
  }
  std::ranges::sort(all);
  const Rooms rooms(all.back());
  for (const Operation& operation : operations) {
    Rates fewer;
    for (int count = 1; count <= gpus; count *= 2) {
      EngineOptions options;
      options.machine = machine_of(count);
      Engine engine(options);
      Rates rates;
      for (const std::int64_t order : all) rates[order] = operation.rate(engine, rooms, order);
      for (const std::int64_t order : all) {
        Line line(fmt::format("{}-orders", operation.name));
        line.add("gpus", count).add("n", static_cast<double>(order));
        line.add("tflops", rates.at(order) * 1e-12);
        const double expected = on_the_line(static_cast<double>(order), [&](double power) {
          return rates.at(static_cast<std::int64_t>(power));
        });
        line.add("of_line", rates.at(order) / expected);
        if (!fewer.empty()) line.add("of_fewer", rates.at(order) / fewer.at(order));
        line.print();
      }
      fewer = std::move(rates);
    }
  }
}

}  // namespace quadriga::bench
