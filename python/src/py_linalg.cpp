// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_linalg.cpp: products, solves, Cholesky and estimates; quadriga.linalg wraps them.
#include "py_linalg.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <quadriga/simulate.h>

#include <complex>
#include <memory>
#include <utility>

#include "bindings.h"
#include "linalg/check.h"

namespace quadriga::python {
namespace {

using linalg::Coefficient;
using linalg::Matrix;
using linalg::Op;
using linalg::Uplo;
using Complex = std::complex<double>;

Coefficient scalar(Complex value) { return {value.real(), value.imag()}; }
Op op_of(int op) { return static_cast<Op>(op); }
Uplo uplo_of(bool lower) { return lower ? Uplo::lower : Uplo::upper; }

void matmul(const PyEngine& engine, Complex alpha, const Matrix& a, int op_a, const Matrix& b,
            int op_b, Complex beta, const Matrix& c, const CallOptions& options) {
  // Python's names of its arguments.
  linalg::check_no_overlap("a", a, "out", c.view());
  linalg::check_no_overlap("b", b, "out", c.view());
  call(engine.state(), options, [=](Engine& e, const linalg::Options& given) {
    linalg::matmul(e, scalar(alpha), a, op_of(op_a), b, op_of(op_b), scalar(beta), c.view(), given);
  });
}

void syrk(const PyEngine& engine, Complex alpha, const Matrix& a, int op, Complex beta,
          const Matrix& c, bool lower, const CallOptions& options) {
  call(engine.state(), options, [=](Engine& e, const linalg::Options& given) {
    linalg::syrk(e, scalar(alpha), a, op_of(op), scalar(beta), c.view(), uplo_of(lower), given);
  });
}

void herk(const PyEngine& engine, double alpha, const Matrix& a, int op, double beta,
          const Matrix& c, bool lower, const CallOptions& options) {
  call(engine.state(), options, [=](Engine& e, const linalg::Options& given) {
    linalg::herk(e, alpha, a, op_of(op), beta, c.view(), uplo_of(lower), given);
  });
}

void solve_triangular(const PyEngine& engine, const Matrix& a, bool lower, int op,
                      bool unit_diagonal, const Matrix& b, const CallOptions& options) {
  call(engine.state(), options, [=](Engine& e, const linalg::Options& given) {
    linalg::solve_triangular(e, a, uplo_of(lower), op_of(op), unit_diagonal, b.view(), given);
  });
}

void cholesky(const PyEngine& engine, const Matrix& a, const Matrix& out, bool lower,
              const CallOptions& options) {
  call(engine.state(), options, [=](Engine& e, const linalg::Options& given) {
    linalg::cholesky(e, a, out.view(), uplo_of(lower), linalg::Other::zero, given);
  });
}

linalg::Problem problem(int kind, std::int64_t m, std::int64_t n, std::int64_t k, DType dtype,
                        bool from_source, bool accumulate) {
  return {static_cast<linalg::Problem::Kind>(kind), m, n, k, dtype, from_source, accumulate};
}

nb::typed<nb::dict, nb::str, nb::any> as_dict(const linalg::Estimate& estimate) {
  nb::dict links;
  for (const linalg::LinkBytes& link : estimate.links)
    links[nb::str(link.link.c_str())] = link.bytes;
  nb::list devices;
  for (const std::size_t bytes : estimate.device_bytes) devices.append(bytes);
  nb::dict dict;
  dict["seconds"] = estimate.seconds;
  dict["bound_seconds"] = estimate.bound_seconds;
  dict["host_bytes"] = estimate.host_bytes;
  dict["links"] = links;
  dict["device_bytes"] = devices;
  dict["buffer_bytes"] = estimate.buffer_bytes;
  dict["matrix_bytes"] = estimate.matrix_bytes;
  dict["tile"] = estimate.tile;
  dict["tile_cols"] = estimate.tile_cols;
  dict["tasks"] = estimate.tasks;
  nb::list programs;
  for (const std::uint64_t tasks : estimate.extrapolated_from) programs.append(tasks);
  dict["extrapolated_from"] = programs;
  dict["seconds_uncertainty"] = estimate.seconds_uncertainty;
  dict["bytes_uncertainty"] = estimate.bytes_uncertainty;
  return dict;
}

nb::typed<nb::dict, nb::str, nb::any> estimate(const PyEngine& engine,
                                               const linalg::Problem& problem,
                                               const CallOptions& options) {
  auto found = std::make_shared<linalg::Estimate>();
  call(engine.state(), options, [found, problem](Engine& e, const linalg::Options& given) {
    *found = linalg::estimate(e, problem, given);
  });
  return as_dict(*found);
}

nb::typed<nb::dict, nb::str, nb::any> simulate(const PyEngine& engine,
                                               const linalg::Problem& problem,
                                               const CallOptions& options) {
  auto found = std::make_shared<linalg::Estimate>();
  call(engine.state(), options, [found, problem](Engine& e, const linalg::Options& given) {
    *found = linalg::simulate(e, problem, given);
  });
  return as_dict(*found);
}

void bind_estimate(nb::module_& module) {
  nb::class_<linalg::Problem>(module, "Problem", "What an estimate is about.")
      .def(nb::new_(&problem), nb::arg("kind"), nb::arg("m"), nb::arg("n"), nb::arg("k"),
           nb::arg("dtype"), nb::arg("from_source"), nb::arg("accumulate"));
  module.def("estimate", estimate, nb::arg("engine"), nb::arg("problem"), nb::arg("options"));
  module.def("simulate", simulate, nb::arg("engine"), nb::arg("problem"), nb::arg("options"));
  module.def(
      "default_tile",
      [](const PyEngine& engine, const linalg::Problem& about) {
        return linalg::default_tile(engine.engine(), about);
      },
      nb::arg("engine"), nb::arg("problem"));
}

}  // namespace

void bind_linalg(nb::module_& module) {
  bind_matrix(module);
  nb::class_<CallOptions>(module, "CallOptions", "What every call takes.")
      .def(nb::new_([](std::int64_t tile, nb::object keep, nb::object progress,
                       std::optional<bool> reproducible) {
             return CallOptions{tile, reproducible, std::move(keep), std::move(progress)};
           }),
           nb::arg("tile"), nb::arg("keep").none(), nb::arg("progress").none(),
           nb::arg("reproducible").none() = nb::none());
  bind_factor(module);
  module.def("matmul", matmul, nb::arg("engine"), nb::arg("alpha"), nb::arg("a"), nb::arg("op_a"),
             nb::arg("b"), nb::arg("op_b"), nb::arg("beta"), nb::arg("c"), nb::arg("options"));
  module.def("syrk", syrk, nb::arg("engine"), nb::arg("alpha"), nb::arg("a"), nb::arg("op"),
             nb::arg("beta"), nb::arg("c"), nb::arg("lower"), nb::arg("options"));
  module.def("herk", herk, nb::arg("engine"), nb::arg("alpha"), nb::arg("a"), nb::arg("op"),
             nb::arg("beta"), nb::arg("c"), nb::arg("lower"), nb::arg("options"));
  module.def("solve_triangular", solve_triangular, nb::arg("engine"), nb::arg("a"),
             nb::arg("lower"), nb::arg("op"), nb::arg("unit_diagonal"), nb::arg("b"),
             nb::arg("options"));
  module.def("cholesky", cholesky, nb::arg("engine"), nb::arg("a"), nb::arg("out"),
             nb::arg("lower"), nb::arg("options"));
  bind_estimate(module);
}

}  // namespace quadriga::python
