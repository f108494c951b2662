// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/recorded_ahead_test.cpp: what the constructor makes, the first solve finds.
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "sparse/conjugate_gradients.h"
#include "sparse/content.h"
#include "sparse/kernels/iterations.h"
#include "sparse/kernels/joint_iterations.h"
#include "sparse/recorded_ahead.h"
#include "unit/sparse/losses.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

struct Case {
  const char* devices;
  CgMethod method;
};
constexpr Case cases[] = {
    {"emulated:1", CgMethod::classic},          {"emulated:1", CgMethod::single_reduction},
    {"emulated:1", CgMethod::pipelined},        {"emulated:2", CgMethod::classic},
    {"emulated:3", CgMethod::single_reduction}, {"emulated:2", CgMethod::pipelined}};

OwnedCsr<double, std::int64_t> drawn_grid(std::mt19937_64& random) {
  const auto side = [&] { return static_cast<std::int64_t>(random() % 11 + 7); };
  const std::int64_t x = side(), y = side(), z = side();
  return grid_matrix<double>({x, y, z}, 0.1);
}

SolverOptions recorded(const Case& drawn) {
  SolverOptions options;
  options.recorded = true;
  options.method = drawn.method;
  options.precondition = Precondition::jacobi;
  return options;
}

std::uint64_t bytes_to_devices(const Engine& engine) {
  std::uint64_t bytes = 0;
  for (const LinkCounters& each : engine.counters().links)
    if (each.source == host_space) bytes += each.bytes;
  return bytes;
}

TEST(RecordedAhead, TheFirstSolveFindsTheMatrixOnTheDevices) {
  std::mt19937_64 random(12);
  for (const Case& drawn : cases) {
    SCOPED_TRACE(std::string(drawn.devices) + " " + std::string(name(drawn.method)));
    const auto a = drawn_grid(random);
    const auto b = random_vector<double>(a.rows, 5);
    Engine engine({drawn.devices});
    const Solver solver(engine, a.view(), recorded(drawn));
    const auto bytes_of_solve = [&] {
      std::vector<double> x(b.size());
      const std::uint64_t before = bytes_to_devices(engine);
      EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
      return bytes_to_devices(engine) - before;
    };
    const std::uint64_t first = bytes_of_solve();
    EXPECT_EQ(first, bytes_of_solve());
    EXPECT_GE(first, 2 * b.size() * sizeof(double));
    EXPECT_GT(solver.plan().recording_seconds, 0);
    EXPECT_GE(solver.plan().seconds, solver.plan().recording_seconds);
  }
}

/// Which operands the iterations of a solver's parts are called with, and how many they are.
class Calls {
 public:
  using Call = std::pair<std::int64_t, std::vector<const void*>>;

  explicit Calls(const SolverContent& content) {
    const SolveCodelets& codelets = content.codelets(1, MKind::chosen);
    const bool is_alone = content.parts() == 1;
    for (std::size_t part = 0; part < content.parts(); ++part)
      watch(codelet_of(codelets, part, is_alone), is_alone);
  }
  std::set<Call> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }

 private:
  static Codelet& codelet_of(const SolveCodelets& codelets, std::size_t part, bool is_alone) {
    const OneReductionCodelets* const other = codelets.one_reduction();
    if (other) return mutable_one(is_alone ? other->iterations() : other->joint_iterations(part));
    return mutable_one(is_alone ? codelets.iterations() : codelets.joint_iterations(part));
  }
  static Codelet& mutable_one(const Codelet& codelet) { return const_cast<Codelet&>(codelet); }

  void watch(Codelet& codelet, bool is_alone) {
    codelet.cpu = [this, is_alone, body = std::move(codelet.cpu)](const Arguments& a) {
      Call call;
      call.first = is_alone ? a.param<IterationsParams>().count : a.param<JointParams>().count;
      for (const View& each : a.operands) call.second.push_back(each.data);
      {
        const std::lock_guard lock(mutex_);
        calls_.insert(std::move(call));
      }
      body(a);
    };
  }

  std::mutex mutex_;
  std::set<Call> calls_;
};

// A recording is found by its operands' addresses.
TEST(RecordedAhead, SolvesHaveTheAddressesOfTheConstructor) {
  std::mt19937_64 random(7);
  for (const Case& drawn : cases) {
    SCOPED_TRACE(std::string(drawn.devices) + " " + std::string(name(drawn.method)));
    const auto a = drawn_grid(random);
    const auto b = random_vector<double>(a.rows, 5);
    Engine engine({drawn.devices});
    SolverOptions options = recorded(drawn);
    options.records_ahead = false;
    const auto content =
        std::make_shared<const SolverContent>(engine, RowReader(a.view()), options);
    Calls calls(*content);
    EXPECT_GT(record_ahead(*content), 0);
    const std::set<Calls::Call> ahead = calls.take();
    std::set<std::vector<const void*>> places;
    for (const Calls::Call& each : ahead) places.insert(each.second);
    EXPECT_EQ(places.size(), content->parts());
    EXPECT_EQ(ahead.size(), 7 * content->parts()) << "1, 2, 4, ... 64 iterations";
    for (int call = 0; call < 6; ++call) {
      std::vector<double> x(b.size());
      SolveOptions wanted;
      wanted.zero_start = random() % 2 == 0;
      SolveContent solve(content, b.data(), x.data(), 1, wanted);
      EXPECT_EQ(solve.finish().reason, StopReason::converged);
      for (const Calls::Call& each : calls.take())
        EXPECT_TRUE(places.contains(each.second))
            << "call " << call << ": " << each.first << " iterations elsewhere";
    }
  }
}

}  // namespace
}  // namespace quadriga::sparse::testing
