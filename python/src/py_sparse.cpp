// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_sparse.cpp: sparse solvers; quadriga.sparse wraps them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <quadriga/sparse.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "bindings.h"
#include "blocking.h"
#include "body.h"
#include "py_engine.h"
#include "sparse/numbers.h"

namespace quadriga::python {
namespace {

using ArrayAddress = std::uintptr_t;
using Dict = nb::typed<nb::dict, nb::str, nb::any>;

const void* at(ArrayAddress address) noexcept { return reinterpret_cast<const void*>(address); }
void* memory_at(ArrayAddress address) noexcept { return reinterpret_cast<void*>(address); }

sparse::CsrView csr(std::int64_t rows, std::int64_t cols, std::int64_t elements,
                    ArrayAddress offsets, ArrayAddress columns, ArrayAddress values,
                    int index_bytes, DType dtype) {
  return {rows, cols, elements, at(offsets), at(columns), at(values), index_bytes, dtype};
}

Dict as_dict(const sparse::SolveResult& result) {
  Dict dict;
  const std::string_view reason = sparse::name(result.reason);
  dict["reason"] = nb::str(reason.data(), reason.size());
  dict["iterations"] = result.iterations;
  dict["tolerances"] = result.tolerances;
  dict["true_residuals"] = result.true_residuals;
  dict["residuals"] = result.residuals;
  dict["conditions"] = result.conditions;
  dict["method"] = sparse::name(result.method);
  dict["replacements"] = result.replacements;
  dict["seconds"] = result.seconds;
  return dict;
}

Dict as_dict(const sparse::ProductModel& model) {
  Dict dict;
  dict["compute_seconds"] = model.compute_seconds;
  dict["exchange_seconds"] = model.exchange_seconds;
  dict["in_turn_seconds"] = model.in_turn_seconds();
  dict["overlapped_seconds"] = model.overlapped_seconds();
  dict["reachable_seconds"] = model.reachable_seconds;
  dict["largest_gain"] = model.largest_gain();
  return dict;
}

nb::list as_list(const std::vector<sparse::ProductModel>& models) {
  nb::list list;
  for (const sparse::ProductModel& each : models) list.append(as_dict(each));
  return list;
}

/// A solve, and what it works on, let go with the GIL free.
class PySolve {
 public:
  PySolve(std::shared_ptr<EngineState> state, const sparse::Solver& solver, const void* b, void* x,
          std::int64_t columns, sparse::SolveOptions options, const nb::object& memory)
      : state_(std::move(state)) {
    memory_->add(memory);
    options.progress = [progress = progress_](std::int64_t iterations) {
      return progress->report(static_cast<double>(iterations));
    };
    solve_ = std::make_shared<std::unique_ptr<sparse::Solve>>();
    run(
        [solver, b, x, columns, options](std::unique_ptr<sparse::Solve>& solve) {
          solve = std::make_unique<sparse::Solve>(solver.begin_cg(b, x, columns, options));
        },
        nb::none());
  }
  PySolve(PySolve&&) = default;
  PySolve& operator=(PySolve&&) = delete;
  ~PySolve() {
    if (!state_) return;
    if (inside_body()) {
      std::pair last(std::move(state_), std::move(solve_));  // of a pair, the second goes first
      end_elsewhere(std::pair(std::move(memory_), std::move(last)));
      return;
    }
    const GilReleased released;
    solve_.reset();
    state_.reset();
  }

  bool advance(std::int64_t iterations, const nb::object& progress) {
    auto is_over = std::make_shared<bool>(false);
    run([is_over, iterations](
            std::unique_ptr<sparse::Solve>& solve) { *is_over = solve->advance(iterations); },
        progress);
    return *is_over;
  }

  std::int64_t iterations() const { return (*solve_)->iterations(); }

  void resume(double rtol, std::int64_t iterations) {
    run([=](std::unique_ptr<sparse::Solve>& solve) { solve->resume(rtol, iterations); },
        nb::none());
  }

  Dict finish(const nb::object& progress) {
    auto result = std::make_shared<sparse::SolveResult>();
    run([result](std::unique_ptr<sparse::Solve>& solve) { *result = solve->finish(); }, progress);
    return as_dict(*result);
  }

 private:
  template <class Work>
  void run(Work work, const nb::object& progress) {
    block(state_, {[solve = solve_, work] { work(*solve); }, memory_, progress_, progress});
  }

  std::shared_ptr<Keep> memory_ = std::make_shared<Keep>();
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  std::shared_ptr<EngineState> state_;
  std::shared_ptr<std::unique_ptr<sparse::Solve>> solve_;
};

/// A solver and its engine, let go in this order.
class PySolver {
 public:
  /// `a`: a CsrView, or a RowSource.
  template <class Rows>
  PySolver(const PyEngine& engine, const Rows& a, sparse::SolverOptions options,
           const nb::object& keep)
      : state_(engine.state()), solver_(std::make_shared<std::unique_ptr<sparse::Solver>>()) {
    auto memory = std::make_shared<Keep>();
    memory->add(keep);
    block(state_, {[state = state_, solver = solver_, a, options] {
                     *solver = std::make_unique<sparse::Solver>(state->engine(), a, options);
                   },
                   std::move(memory), std::make_shared<Progress>(), nb::none()});
  }
  PySolver(PySolver&&) = default;
  PySolver& operator=(PySolver&&) = delete;
  ~PySolver() {
    if (!state_) return;
    if (inside_body()) {
      end_elsewhere(std::pair(std::move(state_), std::move(solver_)));  // the second goes first
      return;
    }
    const GilReleased released;
    solver_.reset();
    state_.reset();
  }

  void multiply(ArrayAddress x, ArrayAddress y, std::int64_t columns,
                const nb::object& keep) const {
    auto memory = std::make_shared<Keep>();
    memory->add(keep);
    block(state_,
          {[solver = solver_, x, y, columns] { (*solver)->multiply(at(x), memory_at(y), columns); },
           std::move(memory), std::make_shared<Progress>(), nb::none()});
  }

  template <class Rows>
  void update(const Rows& a, ArrayAddress diagonal, const nb::object& keep) const {
    auto memory = std::make_shared<Keep>();
    memory->add(keep);
    block(state_, {[solver = solver_, a, diagonal] { (*solver)->update(a, at(diagonal)); },
                   std::move(memory), std::make_shared<Progress>(), nb::none()});
  }

  double measure_product(std::int64_t count, std::int64_t columns, int mode) const {
    auto seconds = std::make_shared<double>(0);
    block(state_, {[solver = solver_, seconds, count, columns, mode] {
                     *seconds = (*solver)->measure_product(count, columns,
                                                           static_cast<sparse::ProductMode>(mode));
                   },
                   std::make_shared<Keep>(), std::make_shared<Progress>(), nb::none()});
    return *seconds;
  }

  PySolve begin_cg(ArrayAddress b, ArrayAddress x, std::int64_t columns, double rtol, double atol,
                   std::int64_t iterations, bool zero_start, bool checked,
                   const nb::object& keep) const {
    sparse::SolveOptions options;
    options.rtol = rtol;
    options.atol = atol;
    options.iterations = iterations;
    options.zero_start = zero_start;
    options.checked = checked;
    return {state_, **solver_, at(b), memory_at(x), columns, std::move(options), keep};
  }

  Dict plan() const {
    const sparse::PlanReport report = (*solver_)->plan();
    Dict dict;
    const std::string_view format = sparse::name((*solver_)->format());
    dict["format"] = nb::str(format.data(), format.size());
    dict["dense_rows"] = report.dense_rows;
    dict["block_rows"] = report.block_rows;
    dict["first_rows"] = report.first_rows;
    nb::list devices;
    for (const DeviceId device : report.devices)
      devices.append(device == no_device ? -1 : static_cast<int>(device));
    dict["devices"] = devices;
    dict["halo_rows"] = report.halo_rows;
    dict["border_rows"] = report.border_rows;
    dict["bytes"] = report.bytes;
    dict["method"] = sparse::name(report.method);
    dict["method_reason"] = report.method_reason;
    dict["split"] = sparse::name(report.split);
    dict["recorded"] = report.recorded;
    nb::list overlaps;
    for (const bool each : report.overlaps) overlaps.append(each);
    dict["overlaps"] = overlaps;
    dict["models"] = as_list(report.models);
    nb::list estimates;
    for (const sparse::ProductEstimate& each : report.estimates) {
      nb::dict way;
      way["exchange"] = each.exchange == sparse::Exchange::whole ? "whole" : "halo";
      way["route"] = each.route == sparse::CopyRoute::host ? "host" : "direct";
      way["parts"] = as_list(each.parts);
      estimates.append(way);
    }
    dict["estimates"] = estimates;
    if (report.eigenvalues.high > 0)
      dict["eigenvalues"] = nb::make_tuple(report.eigenvalues.low, report.eigenvalues.high);
    nb::list levels;
    for (const sparse::LevelReport& each : report.levels) {
      nb::dict level;
      level["rows"] = each.rows;
      level["elements"] = each.elements;
      levels.append(level);
    }
    dict["levels"] = levels;
    dict["streamed_bytes"] = report.streamed_bytes;
    dict["streamed_seconds"] = report.streamed_seconds;
    dict["seconds"] = report.seconds;
    dict["recording_seconds"] = report.recording_seconds;
    return dict;
  }

 private:
  std::shared_ptr<EngineState> state_;
  std::shared_ptr<std::unique_ptr<sparse::Solver>> solver_;
};

sparse::SolverOptions solver_options(int format, int precondition, ArrayAddress diagonal,
                                     int inverse_rows, int parts, std::optional<bool> recorded,
                                     int exchange, int route, std::optional<bool> overlap,
                                     int degree) {
  sparse::SolverOptions options;
  options.format = static_cast<sparse::Format>(format);
  options.precondition = static_cast<sparse::Precondition>(precondition);
  options.diagonal = at(diagonal);
  options.inverse_rows = inverse_rows;
  options.parts = parts;
  options.recorded = recorded;
  options.exchange = static_cast<sparse::Exchange>(exchange);
  options.route = static_cast<sparse::CopyRoute>(route);
  options.overlap = overlap;
  options.degree = degree;
  return options;
}

void set_aggregation(sparse::SolverOptions& options, ArrayAddress near_null, int vectors,
                     int unknowns, double strength) {
  options.aggregation = {static_cast<const double*>(at(near_null)), vectors, unknowns, strength};
}

void set_method(sparse::SolverOptions& options, int method, bool fast) {
  options.method = static_cast<sparse::CgMethod>(method);
  options.fast = fast;
}

void set_split(sparse::SolverOptions& options, int split) {
  options.split = static_cast<sparse::Split>(split);
}

void set_records_ahead(sparse::SolverOptions& options, bool ahead) {
  options.records_ahead = ahead;
}

void set_spill(sparse::SolverOptions& options, std::string file) {
  options.spill = std::move(file);
}

void add_level(sparse::SolverOptions& options, const sparse::CsrView& restriction,
               const sparse::CsrView& prolongation, const sparse::CsrView& matrix) {
  options.levels.push_back({restriction, prolongation, matrix});
}

/// Holds a Python object for owners that don't know Python.
std::shared_ptr<PyObject> held_by_pointer(nb::object object) {
  return {object.release().ptr(), [](PyObject* kept) {
            const GilHere gil;
            if (gil) Py_DECREF(kept);
          }};
}

using ReadRows = nb::typed<nb::callable, sparse::CsrView(std::int64_t, std::int64_t)>;

/// Rows by a function of Python's, which keeps what it raises: here it is told in words.
sparse::RowSource row_source(std::int64_t rows, DType dtype, const ReadRows& read) {
  return {rows, dtype,
          [held = held_by_pointer(nb::borrow(read))](std::int64_t first, std::int64_t last) {
            const InsideBody inside(0);
            try {
              return nb::cast<sparse::CsrView>(nb::handle(held.get())(first, last));
            } catch (nb::python_error& error) {
              fail(Errc::task_failed, "rows of a sparse matrix: " + describe(error));
            }
          }};
}

template <class Rows>
PySolver make_solver(const PyEngine& engine, const Rows& a, const sparse::SolverOptions& options,
                     const nb::object& keep) {
  return {engine, a, options, keep};
}

void laplacian(std::int64_t x, std::int64_t y, std::int64_t z, int points, std::int64_t first,
               std::int64_t last, ArrayAddress offsets, ArrayAddress columns, ArrayAddress values,
               DType dtype) {
  const GilReleased released;
  sparse::laplacian({x, y, z, points}, first, last, static_cast<std::int64_t*>(memory_at(offsets)),
                    static_cast<std::int64_t*>(memory_at(columns)), memory_at(values), dtype);
}

/// Numbers in a text of a file that is mapped or held elsewhere: how many, and where something else
/// begins.
nb::tuple read_numbers(ArrayAddress text, std::int64_t bytes, ArrayAddress out, std::int64_t most) {
  sparse::NumbersRead read;
  {
    const GilReleased released;
    read = sparse::read_numbers(
        {static_cast<const char*>(at(text)), static_cast<std::size_t>(bytes)},
        {static_cast<double*>(memory_at(out)), static_cast<std::size_t>(most)});
  }
  return nb::make_tuple(read.count, read.bad_at);
}

}  // namespace

void bind_sparse(nb::module_& module) {
  nb::class_<sparse::CsrView>(module, "CsrView", "A matrix by compressed rows in arrays.")
      .def(nb::new_(&csr), nb::arg("rows"), nb::arg("cols"), nb::arg("elements"),
           nb::arg("offsets"), nb::arg("columns"), nb::arg("values"), nb::arg("index_bytes"),
           nb::arg("dtype"));
  nb::class_<sparse::RowSource>(module, "RowSource", "A matrix whose rows a function reads.")
      .def(nb::new_(&row_source), nb::arg("rows"), nb::arg("dtype"), nb::arg("read"));
  nb::class_<sparse::SolverOptions>(module, "SolverOptions", "What a sparse solver is made with.")
      .def(nb::new_(&solver_options), nb::arg("format"), nb::arg("precondition"),
           nb::arg("diagonal"), nb::arg("inverse_rows"), nb::arg("parts"),
           nb::arg("recorded").none(), nb::arg("exchange"), nb::arg("route"),
           nb::arg("overlap").none(), nb::arg("degree"))
      .def("set_aggregation", &set_aggregation, nb::arg("near_null"), nb::arg("vectors"),
           nb::arg("unknowns"), nb::arg("strength"))
      .def("set_method", &set_method, nb::arg("method"), nb::arg("fast"))
      .def("set_split", &set_split, nb::arg("split"))
      .def("set_records_ahead", &set_records_ahead, nb::arg("ahead"))
      .def("set_spill", &set_spill, nb::arg("file"))
      .def("add_level", &add_level, nb::arg("restriction"), nb::arg("prolongation"),
           nb::arg("matrix"));
  nb::class_<PySolve>(module, "SparseSolve", "Conjugate gradients in steps.")
      .def("advance", &PySolve::advance, nb::arg("iterations"),
           nb::arg("progress").none() = nb::none())
      .def("iterations", &PySolve::iterations)
      .def("resume", &PySolve::resume, nb::arg("rtol"), nb::arg("iterations"))
      .def("finish", &PySolve::finish, nb::arg("progress").none() = nb::none());
  nb::class_<PySolver>(module, "SparseSolver", "A sparse matrix in parts on the devices.")
      .def(nb::new_(&make_solver<sparse::CsrView>), nb::arg("engine"), nb::arg("a"),
           nb::arg("options"), nb::arg("keep"))
      .def(nb::new_(&make_solver<sparse::RowSource>), nb::arg("engine"), nb::arg("a"),
           nb::arg("options"), nb::arg("keep"))
      .def("multiply", &PySolver::multiply, nb::arg("x"), nb::arg("y"), nb::arg("columns"),
           nb::arg("keep"))
      .def("update", &PySolver::update<sparse::CsrView>, nb::arg("a"), nb::arg("diagonal"),
           nb::arg("keep"))
      .def("update", &PySolver::update<sparse::RowSource>, nb::arg("a"), nb::arg("diagonal"),
           nb::arg("keep"))
      .def("measure_product", &PySolver::measure_product, nb::arg("count"), nb::arg("columns"),
           nb::arg("mode"))
      .def("begin_cg", &PySolver::begin_cg, nb::arg("b"), nb::arg("x"), nb::arg("columns"),
           nb::arg("rtol"), nb::arg("atol"), nb::arg("iterations"), nb::arg("zero_start"),
           nb::arg("checked"), nb::arg("keep"))
      .def("plan", &PySolver::plan);
  module.def("read_numbers", read_numbers, nb::arg("text"), nb::arg("bytes"), nb::arg("out"),
             nb::arg("most"),
             nb::sig("def read_numbers(text: int, bytes: int, out: int, most: int) -> "
                     "tuple[int, int]"));
  module.def(
      "laplacian_elements",
      [](std::int64_t x, std::int64_t y, std::int64_t z, int points) {
        return sparse::elements_of({x, y, z, points});
      },
      nb::arg("x"), nb::arg("y"), nb::arg("z"), nb::arg("points"));
  module.def("laplacian", laplacian, nb::arg("x"), nb::arg("y"), nb::arg("z"), nb::arg("points"),
             nb::arg("first"), nb::arg("last"), nb::arg("offsets"), nb::arg("columns"),
             nb::arg("values"), nb::arg("dtype"));
}

}  // namespace quadriga::python
