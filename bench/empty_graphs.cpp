// SPDX-License-Identifier: BSD-3-Clause
// bench/empty_graphs.cpp: submits graphs of empty tasks by the public interface alone.
#include "empty_graphs.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include "line.h"

namespace quadriga::bench {
namespace {

constexpr std::int64_t product_order = 58;
constexpr std::size_t simple_tasks = 200'000;
constexpr std::int64_t chains = 64;

void nothing(const Arguments&) {}

void linger(const Arguments&) {
  constexpr double seconds = 3e-6;
  for (const double begin = now(); now() - begin < seconds;) {
  }
}

}  // namespace

EmptyGraph::EmptyGraph(Engine& engine, std::string_view name, std::int64_t order)
    : engine_(engine) {
  codelet_.name = name;
  codelet_.cpu = nothing;
  codelet_.cost = [](const Arguments&) { return Cost{}; };
  std::int64_t tiles = 0;
  if (name == "gemm3") {
    codelet_.access = {Access::read, Access::read, Access::update};
    order_ = order ? order : product_order;
    tiles = 3 * order_ * order_;
  } else if (name == "chains" || name == "chain") {
    codelet_.access = {Access::update};
    tiles = name == "chain" ? 1 : chains;
  } else {
    require(name == "independent",
            fmt::format("'{}': the graphs are gemm3, independent, chains and chain", name));
  }
  slow_codelet_ = codelet_;
  slow_codelet_.cpu = linger;
  elements_.resize(tiles);
  for (double& element : elements_)
    tiles_.push_back(engine.data(&element, 1, 1, 1, DType::float64));
}

std::int64_t EmptyGraph::submit_product(const Codelet& codelet) {
  const Data* const a = tiles_.data();
  const Data* const b = a + order_ * order_;
  const Data* const c = b + order_ * order_;
  for (std::int64_t i = 0; i < order_; ++i) {
    for (std::int64_t j = 0; j < order_; ++j) {
      for (std::int64_t k = 0; k < order_; ++k) {
        engine_.submit(
            codelet,
            {{a[i * order_ + k]}, {b[k * order_ + j]}, {c[i * order_ + j], Access::update}});
      }
    }
  }
  return order_ * order_ * order_;
}

std::int64_t EmptyGraph::submit(bool slow) {
  const Codelet& codelet = slow ? slow_codelet_ : codelet_;
  if (order_) return submit_product(codelet);
  for (std::size_t i = 0; i < simple_tasks; ++i) {
    if (tiles_.empty()) {
      engine_.submit(codelet, {});
    } else {
      engine_.submit(codelet, {{tiles_[i % tiles_.size()], Access::update}});
    }
  }
  return simple_tasks;
}

double seconds_a_task(Engine& engine, EmptyGraph& graph, long long passes) {
  std::vector<double> seconds;
  for (long long pass = 0; pass <= passes; ++pass) {
    const double begin = now();
    const std::int64_t tasks = graph.submit();
    engine.wait();
    if (pass > 0) seconds.push_back((now() - begin) / static_cast<double>(tasks));
  }
  return median(seconds);
}

}  // namespace quadriga::bench
