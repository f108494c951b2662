// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/named_calls_test.cpp: a trace names the calls of the program.
#include <gtest/gtest.h>
#include <quadriga/linalg.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace quadriga::linalg {
namespace {

constexpr std::int64_t order = 96;

class NamedCallsTest : public ::testing::TestWithParam<const char*> {
 protected:
  NamedCallsTest() {
    for (std::int64_t i = 0; i < order; ++i) a_[static_cast<std::size_t>(i * (order + 1))] = 2;
  }
  static MatrixView view(std::vector<double>& memory) {
    return MatrixView::columns(memory.data(), order, order, DType::float64);
  }
  static EngineOptions options() {
    EngineOptions options;
    options.devices = GetParam();
    options.trace = true;
    return options;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    const auto trace = nlohmann::json::parse(engine_.trace_json());
    for (const auto& each : trace["quadriga"]["sections"]) {
      EXPECT_LT(each["start"], each["end"]);
      all.push_back(each["name"]);
    }
    return all;
  }
  using Names = std::vector<std::string>;

  static constexpr auto elements = static_cast<std::size_t>(order * order);
  Engine engine_{options()};
  std::vector<double> a_ = std::vector<double>(elements);
  std::vector<double> b_ = std::vector<double>(elements, 1);
  std::vector<double> c_ = std::vector<double>(elements);
};

INSTANTIATE_TEST_SUITE_P(Linalg, NamedCallsTest,
                         ::testing::Values("cpu:2", "emulated:2,memory=1MiB"),
                         [](const auto& each) { return std::string(each.param).substr(0, 3); });

TEST_P(NamedCallsTest, StandInTheTraceInTheirOrder) {
  const Options tiles{.tile = 32};
  matmul(engine_, 1.0, view(a_), Op::none, view(b_), Op::none, 0.0, view(c_), tiles);
  const Factor factor = cho_factor(engine_, view(a_), {}, tiles);
  factor.solve(view(b_));
  cholesky(engine_, view(a_), view(c_), Uplo::lower, Other::zero, tiles);
  solve_triangular(engine_, view(a_), Uplo::lower, Op::none, false, view(b_), tiles);
  syrk(engine_, 1.0, view(a_), Op::none, 0.0, view(c_), Uplo::lower, tiles);
  EXPECT_EQ(names(),
            (Names{"matmul", "cho_factor", "cho_solve", "cholesky", "solve_triangular", "syrk"}));
}

TEST_P(NamedCallsTest, OfAPlainEngineCostNothing) {
  EngineOptions plain = options();
  plain.trace = false;
  Engine engine(plain);
  matmul(engine, 1.0, view(a_), Op::none, view(b_), Op::none, 0.0, view(c_));
  EXPECT_THROW(engine.trace_json(), Error);
}

}  // namespace
}  // namespace quadriga::linalg
