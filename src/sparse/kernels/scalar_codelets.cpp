// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/scalar_codelets.cpp: the tasks between products and steps.
#include "sparse/kernels/scalar_codelets.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "sparse/kernels/one_reduction_scalars.h"
#include "sparse/kernels/part_codelets.h"
#include "sparse/kernels/part_cuda.h"
#include "sparse/kernels/scalars.h"

namespace quadriga::sparse {
namespace {

/// Sums over all parts, whose operands begin at `first_operand`.
class AllSums {
 public:
  AllSums(const Arguments& arguments, std::size_t first_operand,
          const std::vector<std::int64_t>& blocks, std::int64_t columns)
      : arguments_(arguments), first_(first_operand), blocks_(blocks), columns_(columns) {}

  double of(std::int64_t quantity, std::int64_t column) const {
    double sum = 0;
    for (std::size_t part = 0; part < blocks_.size(); ++part) {
      const double* const sums = arguments_.operands[first_ + part].as<const double>() +
                                 quantity * blocks_[part] * columns_ + column;
      for (std::int64_t block = 0; block < blocks_[part]; ++block) sum += sums[block * columns_];
    }
    return sum;
  }

 private:
  const Arguments& arguments_;
  std::size_t first_;
  const std::vector<std::int64_t>& blocks_;
  std::int64_t columns_;
};

std::function<Cost(const Arguments&)> cost_of(const std::vector<std::int64_t>& blocks,
                                              std::int64_t columns, double quantities) {
  const auto sums =
      static_cast<double>(std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}) * columns);
  return [=](const Arguments&) {
    return Cost::of_work(quantities * sums, quantities * sums * sizeof(double));
  };
}

std::vector<Access> signature(std::initializer_list<Access> first, std::size_t parts) {
  std::vector<Access> all(first);
  all.insert(all.end(), parts, Access::read);
  return all;
}

}  // namespace

Codelet restart_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  Codelet codelet{"sparse_restart", signature({Access::update}, blocks.size())};
  codelet.cost = cost_of(blocks, columns, 3);
  codelet.cpu = [=](const Arguments& a) {
    const AllSums sums(a, 1, blocks, columns);
    auto* const states = a.operands[0].as<ColumnState>();
    const auto params = a.param<RestartParams>();
    for (std::int64_t c = 0; c < columns; ++c) {
      const double share = params.keeps_direction ? kept_share(states[c]) : 0;
      if (params.is_first) states[c] = {};
      const ColumnSums of_all{sums.of(0, c), sums.of(1, c), sums.of(2, c)};
      const double tolerance = tolerance_of(params.tolerances, std::sqrt(of_all.bb));
      if (params.replaces)
        replace(states[c], of_all, tolerance);
      else
        restart(states[c], of_all, tolerance, share);
    }
  };
  codelet.cuda = restart_on_cuda(blocks, columns);
  return codelet;
}

Codelet set_step_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  Codelet codelet{"sparse_set_step", signature({Access::update}, blocks.size())};
  codelet.cost = cost_of(blocks, columns, 1);
  codelet.cpu = [=](const Arguments& a) {
    const AllSums sums(a, 1, blocks, columns);
    auto* const states = a.operands[0].as<ColumnState>();
    for (std::int64_t c = 0; c < columns; ++c)
      if (states[c].status == IterationStatus::running) set_step(states[c], sums.of(0, c));
  };
  codelet.cuda = set_step_on_cuda(blocks, columns);
  return codelet;
}

Codelet set_direction_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  Codelet codelet{"sparse_set_direction",
                  signature({Access::update, Access::update}, blocks.size())};
  codelet.cost = cost_of(blocks, columns, 2);
  codelet.cpu = [=](const Arguments& a) {
    const AllSums sums(a, 2, blocks, columns);
    auto* const states = a.operands[0].as<ColumnState>();
    auto* const history = a.operands[1].as<IterationRecord>();
    for (std::int64_t c = 0; c < columns; ++c) {
      ColumnState& state = states[c];
      if (state.status != IterationStatus::running) continue;
      set_direction(state, {sums.of(0, c), sums.of(1, c), 0});
      history[(state.iterations - 1) % history_length * columns + c] = {std::sqrt(state.squared),
                                                                        state.alpha, state.beta};
    }
  };
  codelet.cuda = set_direction_on_cuda(blocks, columns);
  return codelet;
}

Codelet set_step_alone_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  Codelet codelet{"sparse_set_step", signature({Access::update}, blocks.size())};
  codelet.cost = cost_of(blocks, columns, 1);
  codelet.cpu = [=](const Arguments& a) {
    const AllSums sums(a, 1, blocks, columns);
    auto* const states = a.operands[0].as<ColumnState>();
    for (std::int64_t c = 0; c < columns; ++c)
      if (states[c].status == IterationStatus::running)
        set_step_without_product(states[c], sums.of(0, c));
  };
  codelet.cuda = set_step_alone_on_cuda(blocks, columns);
  return codelet;
}

Codelet end_step_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  Codelet codelet{"sparse_end_step", signature({Access::update, Access::update}, blocks.size())};
  codelet.cost = cost_of(blocks, columns, 2);
  codelet.cpu = [=](const Arguments& a) {
    const AllSums sums(a, 2, blocks, columns);
    auto* const states = a.operands[0].as<ColumnState>();
    auto* const history = a.operands[1].as<IterationRecord>();
    for (std::int64_t c = 0; c < columns; ++c)
      if (states[c].status == IterationStatus::running)
        record_step(states[c], {sums.of(0, c), sums.of(1, c), 0}, 0, history, columns, c);
  };
  codelet.cuda = end_step_on_cuda(blocks, columns);
  return codelet;
}

Codelet set_scalars_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns,
                            CgMethod method) {
  const bool is_pipelined = method == CgMethod::pipelined;
  Codelet codelet{"sparse_set_scalars", signature({Access::update, Access::update},
                                                  (is_pipelined ? 1 : 2) * blocks.size())};
  codelet.cost = cost_of(blocks, columns, 3);
  codelet.cpu = [=](const Arguments& a) {
    const AllSums of_step(a, 2, blocks, columns);
    const AllSums of_product(a, 2 + (is_pipelined ? 0 : blocks.size()), blocks, columns);
    auto* const states = a.operands[0].as<ColumnState>();
    auto* const history = a.operands[1].as<IterationRecord>();
    const std::int64_t period = period_of(method);
    for (std::int64_t c = 0; c < columns; ++c) {
      if (states[c].status != IterationStatus::running) continue;
      record_step(states[c], {of_step.of(0, c), of_step.of(1, c), 0}, period, history, columns, c);
      set_step_without_product(states[c], of_product.of(is_pipelined ? 2 : 0, c));
    }
  };
  codelet.cuda = set_scalars_on_cuda(blocks, columns, method);
  return codelet;
}

Codelet snapshot_codelet() {
  Codelet codelet{"sparse_snapshot", {Access::read, Access::read, Access::write}};
  codelet.cost = [](const Arguments& a) {
    return Cost::of_work(0, 2 * static_cast<double>(bytes_of(a.operands[2])));
  };
  codelet.cpu = [](const Arguments& a) {
    const std::size_t states = bytes_of(a.operands[0]);
    std::memcpy(a.operands[2].data, a.operands[0].data, states);
    std::memcpy(a.operands[2].as<std::byte>() + states, a.operands[1].data,
                bytes_of(a.operands[1]));
  };
  codelet.cuda = snapshot_on_cuda();
  return codelet;
}

Codelet replicate_codelet() {
  Codelet codelet{"sparse_replicate", {Access::read, Access::write}};
  codelet.cost = [](const Arguments& a) {
    return Cost::of_work(0, 2 * static_cast<double>(bytes_of(a.operands[1])));
  };
  codelet.cpu = [](const Arguments& a) {
    std::memcpy(a.operands[1].data, a.operands[0].data, bytes_of(a.operands[0]));
  };
  codelet.cuda = replicate_on_cuda();
  return codelet;
}

}  // namespace quadriga::sparse
