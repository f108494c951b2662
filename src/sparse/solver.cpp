// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/solver.cpp: the public solver: arguments are checked, work goes to the parts.
#include <fmt/format.h>
#include <quadriga/sparse.h>

#include <cmath>

#include "engine/let_go.h"
#include "engine/named_call.h"
#include "sparse/conjugate_gradients.h"
#include "sparse/content.h"
#include "sparse/measure.h"
#include "sparse/part_data.h"
#include "sparse/row_reader.h"

namespace quadriga::sparse {
namespace {

void check_vectors(const SolverContent& content, const void* in, const void* out,
                   std::int64_t columns) {
  require(columns >= 1, fmt::format("{} columns; expected 1 or more", columns));
  require(content.rows() == 0 || (in && out),
          fmt::format("the vectors {} are null; expected {} rows of {} columns",
                      in ? "for the result" : "to multiply or solve for", content.rows(), columns));
  require(in != out || content.rows() == 0,
          "the result has the input's address; expected memory of its own");
  require(!content.engine().options().virtual_clock || content.engine().options().compute,
          "an engine that doesn't compute knows no residuals");
}

void check(const SolveOptions& options) {
  require(options.rtol >= 0 && options.atol >= 0,
          fmt::format("tolerances {} and {}; expected numbers of 0 or more", options.rtol,
                      options.atol));
}

}  // namespace

std::string_view name(Format format) noexcept {
  switch (format) {
    case Format::automatic:
      return "automatic";
    case Format::csr:
      return "csr";
    case Format::sell:
      return "sell";
    case Format::blocks:
      return "blocks";
  }
  return "unknown";
}

std::string_view name(CgMethod method) noexcept {
  switch (method) {
    case CgMethod::automatic:
      return "automatic";
    case CgMethod::classic:
      return "classic";
    case CgMethod::single_reduction:
      return "single_reduction";
    case CgMethod::pipelined:
      return "pipelined";
  }
  return "unknown";
}

std::string_view name(Split split) noexcept { return split == Split::rows ? "rows" : "columns"; }

std::string_view name(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::converged:
      return "converged";
    case StopReason::iterations:
      return "iterations";
    case StopReason::not_positive_definite:
      return "not_positive_definite";
    case StopReason::indefinite_preconditioner:
      return "indefinite_preconditioner";
    case StopReason::not_finite:
      return "not_finite";
    case StopReason::diverged:
      return "diverged";
    case StopReason::stagnated:
      return "stagnated";
  }
  return "unknown";
}

Solver::Solver(Engine& engine, const CsrView& a, const SolverOptions& options) {
  const NamedCall named(engine, "sparse setup");
  content_ = {new SolverContent(engine, a, options), LetGo(engine)};
}

Solver::Solver(Engine& engine, const RowSource& a, const SolverOptions& options) {
  const NamedCall named(engine, "sparse setup");
  content_ = {new SolverContent(engine, RowReader(a), options), LetGo(engine)};
}

void Solver::update(const CsrView& a, const void* diagonal) const {
  const NamedCall named(content_->engine(), "sparse update");
  content_->update(a, diagonal);
}

void Solver::update(const RowSource& a, const void* diagonal) const {
  const NamedCall named(content_->engine(), "sparse update");
  content_->update(RowReader(a), diagonal);
}

void Solver::multiply(const void* x, void* y, std::int64_t columns) const {
  const NamedCall named(content_->engine(), "sparse product");
  check_vectors(*content_, x, y, columns);
  PartLease data(*content_, columns);
  const std::vector<Data> from = data->add_vector(x);
  const std::vector<Data> to = data->add_vector(y);
  data->load(from);
  data->apply(to);
  data->wait(to);
  data.end_call();
}

double Solver::measure_product(std::int64_t count, std::int64_t columns, ProductMode mode) const {
  require(count >= 1 && columns >= 1,
          fmt::format("{} products of {} columns; expected 1 or more", count, columns));
  return rows() > 0 ? sparse::measure_product(*content_, count, columns, mode) : 0;
}

Solve Solver::begin_cg(const void* b, void* x, std::int64_t columns,
                       const SolveOptions& options) const {
  check_vectors(*content_, b, x, columns);
  check(options);
  return Solve({new SolveContent(content_, b, x, columns, options), LetGo(content_->engine())});
}

SolveResult Solver::cg(const void* b, void* x, std::int64_t columns,
                       const SolveOptions& options) const {
  const NamedCall named(content_->engine(), "cg");
  return begin_cg(b, x, columns, options).finish();
}

std::int64_t Solver::rows() const noexcept { return content_->rows(); }
DType Solver::dtype() const noexcept { return content_->dtype(); }
Format Solver::format() const noexcept { return content_->format(); }
PlanReport Solver::plan() const { return content_->report(); }

Solve::Solve(std::shared_ptr<SolveContent> content) : content_(std::move(content)) {}
Solve::Solve(Solve&&) noexcept = default;
Solve::~Solve() = default;
bool Solve::advance(std::int64_t iterations) { return content_->advance(iterations); }
std::int64_t Solve::iterations() const noexcept { return content_->iterations(); }
SolveResult Solve::finish() { return content_->finish(); }
void Solve::resume(double rtol, std::int64_t iterations) {
  require(rtol >= 0, fmt::format("tolerance {}; expected a number of 0 or more", rtol));
  content_->resume(rtol, iterations);
}

}  // namespace quadriga::sparse
