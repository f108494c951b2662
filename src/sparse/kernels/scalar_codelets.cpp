// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/scalar_codelets.cpp: the tasks between products and steps.
#include "sparse/kernels/scalar_codelets.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

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

  /// Sums of the same parts by another task, whose operands follow.
  AllSums next() const { return {arguments_, first_ + blocks_.size(), blocks_, columns_}; }

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

/// The operands of a task that changes states: these, perhaps the history, and sums of all parts.
struct StatesShape {
  const std::vector<std::int64_t>& blocks;
  std::int64_t columns;
  std::size_t sets;   ///< Of sums, each by all parts.
  double quantities;  ///< That it sums.
  bool has_history;
};

struct RunningColumn {
  ColumnState& state;
  const AllSums& sums;
  IterationRecord* history;
  std::int64_t columns;
  std::int64_t column;

  ColumnSums of_step() const { return {sums.of(0, column), sums.of(1, column), 0}; }
};

/// `change(RunningColumn)` for each column that runs; the others stay as they are.
template <class Change>
Codelet states_codelet(const char* name, const StatesShape& shape, Change change) {
  const std::vector<std::int64_t>& blocks = shape.blocks;
  const std::int64_t columns = shape.columns;
  const std::size_t firsts = shape.has_history ? 2 : 1;
  std::vector<Access> accesses(firsts, Access::update);
  accesses.insert(accesses.end(), shape.sets * blocks.size(), Access::read);
  Codelet codelet{name, std::move(accesses)};
  codelet.cost = cost_of(blocks, columns, shape.quantities);
  codelet.cpu = [=](const Arguments& a) {
    const AllSums sums(a, firsts, blocks, columns);
    auto* const states = a.operands[0].as<ColumnState>();
    auto* const history = firsts == 2 ? a.operands[1].as<IterationRecord>() : nullptr;
    for (std::int64_t c = 0; c < columns; ++c)
      if (states[c].status == IterationStatus::running)
        change(RunningColumn{states[c], sums, history, columns, c});
  };
  return codelet;
}

}  // namespace

Codelet restart_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  std::vector<Access> accesses(1 + blocks.size(), Access::read);
  accesses[0] = Access::update;
  Codelet codelet{"sparse_restart", std::move(accesses)};
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
  Codelet codelet =
      states_codelet("sparse_set_step", {blocks, columns, 1, 1, false},
                     [](const RunningColumn& at) { set_step(at.state, at.sums.of(0, at.column)); });
  codelet.cuda = set_step_on_cuda(blocks, columns);
  return codelet;
}

Codelet set_direction_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  Codelet codelet = states_codelet(
      "sparse_set_direction", {blocks, columns, 1, 2, true}, [](const RunningColumn& at) {
        set_direction(at.state, at.of_step());
        at.history[(at.state.iterations - 1) % history_length * at.columns + at.column] = {
            std::sqrt(at.state.squared), at.state.alpha, at.state.beta};
      });
  codelet.cuda = set_direction_on_cuda(blocks, columns);
  return codelet;
}

Codelet set_step_alone_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  Codelet codelet = states_codelet("sparse_set_step", {blocks, columns, 1, 1, false},
                                   [](const RunningColumn& at) {
                                     set_step_without_product(at.state, at.sums.of(0, at.column));
                                   });
  codelet.cuda = set_step_alone_on_cuda(blocks, columns);
  return codelet;
}

Codelet end_step_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns) {
  Codelet codelet =
      states_codelet("sparse_end_step", {blocks, columns, 1, 2, true}, [](const RunningColumn& at) {
        record_step(at.state, at.of_step(), 0, at.history, at.columns, at.column);
      });
  codelet.cuda = end_step_on_cuda(blocks, columns);
  return codelet;
}

Codelet set_scalars_codelet(const std::vector<std::int64_t>& blocks, std::int64_t columns,
                            CgMethod method) {
  const bool is_pipelined = method == CgMethod::pipelined;
  const std::int64_t period = period_of(method);
  Codelet codelet = states_codelet(
      "sparse_set_scalars", {blocks, columns, is_pipelined ? 1U : 2U, 3, true},
      [=](const RunningColumn& at) {
        record_step(at.state, at.of_step(), period, at.history, at.columns, at.column);
        set_step_without_product(
            at.state, is_pipelined ? at.sums.of(2, at.column) : at.sums.next().of(0, at.column));
      });
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
