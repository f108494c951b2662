// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/random_test.cpp: random systems on random machines give the bits of one device.
#include <array>
#include <thread>

#include "sanitized.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

using Matrix = OwnedCsr<double, std::int64_t>;

/// Symmetric with a dominant diagonal: a random pattern, from nearly diagonal to dense columns.
Matrix random_system(std::mt19937_64& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  const std::int64_t n = 1 + below(700);
  const std::int64_t reach = 1 + below(n);
  std::vector<std::vector<std::pair<std::int64_t, double>>> rows(static_cast<std::size_t>(n));
  std::vector<double> sums(static_cast<std::size_t>(n), 0.1);
  for (std::int64_t i = below(4) * n; i < 6 * n; ++i) {
    const std::int64_t row = below(n);
    const std::int64_t column = std::min(n - 1, row + 1 + below(reach));
    if (row == column) continue;
    const double value = random_value<double>(random);
    rows[row].emplace_back(column, value);
    rows[column].emplace_back(row, value);
    sums[row] += std::abs(value);
    sums[column] += std::abs(value);
  }
  Matrix a;
  a.cols = n;
  for (std::int64_t row = 0; row < n; ++row) {
    a.add(row, sums[row]);
    for (const auto& [column, value] : rows[row]) a.add(column, value);
    a.end_row();
  }
  return a;
}

struct Found {
  std::vector<double> x;
  std::int64_t iterations = 0;
  StopReason reason = StopReason::converged;
};

Found solve(Engine& engine, const Matrix& a, const std::vector<double>& b, std::int64_t columns,
            const SolverOptions& options) {
  Found found{std::vector<double>(b.size())};
  SolveOptions wanted;
  wanted.rtol = 1e-9;
  const SolveResult result =
      Solver(engine, a.view(), options).cg(b.data(), found.x.data(), columns, wanted);
  found.iterations = result.iterations;
  found.reason = result.reason;
  return found;
}

/// Devices with so little memory that parts, sums and buffers pass through them.
std::string small_devices(const Matrix& a, std::int64_t columns, std::uint64_t draw) {
  const std::int64_t bytes = a.offsets.back() * 12 + a.rows * 8 * (8 + 8 * columns);
  return "emulated:" + std::to_string(1 + draw % 4) +
         ",memory=" + std::to_string(bytes * 2 / 3 + (1 << 16)) + "B" +
         (draw % 3 == 0 ? ",peer=4GB/s" : "");
}

EngineOptions virtual_clock(std::uint64_t draw) {
  EngineOptions options;
  options.machine = Machine::parse("emulated:" + std::to_string(1 + draw % 5) + ",memory=64MiB");
  for (const char* const row : {"flops", "bytes"})
    options.machine->kernels[row]["emulated"][1000] = 1e-3;
  options.virtual_clock = true;
  options.protect = draw % 2 == 0;
  return options;
}

TEST(RandomSystems, GiveTheBitsOfOneDevice) {
  for (std::uint64_t seed = 0; seed < (is_sanitized ? 9 : 25); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Matrix a = random_system(random);
    const auto columns = static_cast<std::int64_t>(1 + random() % 5);
    const auto b = random_vector<double>(a.rows * columns, seed);
    SolverOptions options{random() % 2 ? Format::csr : Format::sell,
                          random() % 2 ? Precondition::jacobi : Precondition::none};
    options.method =
        std::array{CgMethod::classic, CgMethod::single_reduction, CgMethod::pipelined}[seed % 3];
    Engine one({"emulated:1"});
    const Found expected = solve(one, a, b, columns, options);
    EXPECT_EQ(expected.reason, StopReason::converged);
    const auto expect_same = [&](EngineOptions given, int parts) {
      options.parts = parts;
      Engine engine(std::move(given));
      const Found found = solve(engine, a, b, columns, options);
      EXPECT_EQ(found.iterations, expected.iterations);
      EXPECT_EQ(found.reason, expected.reason);
      EXPECT_TRUE(same_bits(found.x, expected.x));
    };
    expect_same({"cpu:" + std::to_string(1 + random() % 2)}, 0);
    expect_same({small_devices(a, columns, random())}, columns > 1 ? 12 : 0);
    expect_same({"emulated:2"}, static_cast<int>(1 + random() % 9));
    expect_same(virtual_clock(random()), 0);
  }
}

TEST(Threads, MayShareASolver) {
  const Matrix a = grid_matrix<double>({12, 12, 12});
  Engine engine({"emulated:2"});
  const Solver solver(engine, a.view());
  constexpr int threads = 3;
  std::vector<std::vector<double>> found(threads), products(threads);
  const auto b = random_vector<double>(a.rows, 3);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round) {
        found[i].assign(b.size(), 0);
        products[i].assign(b.size(), 0);
        solver.cg(b.data(), found[i].data());
        solver.multiply(found[i].data(), products[i].data());
      }
    });
  for (std::thread& each : running) each.join();
  for (int i = 1; i < threads; ++i) {
    EXPECT_TRUE(same_bits(found[0], found[i]));
    EXPECT_TRUE(same_bits(products[0], products[i]));
  }
}

}  // namespace
}  // namespace quadriga::sparse::testing
