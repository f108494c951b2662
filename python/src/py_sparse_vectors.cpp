// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_sparse_vectors.cpp: distributed matrices and what they make, which quadriga.sparse
// wraps.
//
// A matrix and what it made are one thread's at a time: `MatrixState::mutex` is held by operations,
// which may wait for room among the engine's tasks, and never by who has the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/complex.h>
#include <quadriga/sparse.h>
#include <quadriga/sparse_vectors.h>

#include <complex>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "bindings.h"
#include "blocking.h"
#include "body.h"
#include "py_engine.h"

namespace quadriga::python {
namespace {

using ArrayAddress = std::uintptr_t;

struct MatrixState {
  std::shared_ptr<EngineState> engine;
  std::mutex mutex;
  std::optional<sparse::Matrix> matrix;  // Let go before the engine.
};

using StateRef = std::shared_ptr<MatrixState>;

/// Submits without the GIL. Errors: invalid_argument once the engine has begun to end.
template <class Work>
auto submit(const StateRef& state, Work work) {
  wait_alone(*state->engine);
  const GilReleased released;
  const Submitting submitting(state->engine);
  submitting.engine();
  const std::lock_guard lock(state->mutex);
  return work();
}

/// Something of a matrix's, let go with the GIL free: the last one ends the matrix.
template <class Value>
class HeldValue {
 public:
  HeldValue(StateRef state, Value value) : state_(std::move(state)), value_(std::move(value)) {}
  HeldValue(HeldValue&&) = default;
  HeldValue& operator=(HeldValue&&) = delete;
  ~HeldValue() {
    if (!state_) return;
    if (inside_body()) {
      end_elsewhere(std::pair(std::move(state_), std::move(value_)));  // the second goes first
      return;
    }
    const GilReleased released;
    value_.reset();
    state_.reset();
  }
  const StateRef& state() const noexcept { return state_; }
  const Value& operator*() const noexcept { return *value_; }
  Value& operator*() noexcept { return *value_; }

 private:
  StateRef state_;  ///< Null: of a constant.
  std::optional<Value> value_;
};

using PyVector = HeldValue<sparse::Vector>;
using PyScalar = HeldValue<sparse::Scalar>;

PyScalar constant(std::complex<double> value) { return {nullptr, value}; }

/// By the numbers of quadriga.sparse.vectors.
sparse::Scalar computed(int operation, const sparse::Scalar& x, const sparse::Scalar& y) {
  switch (operation) {
    case 0:
      return x + y;
    case 1:
      return x - y;
    case 2:
      return x * y;
    case 3:
      return x / y;
    case 4:
      return x < y;
    case 5:
      return x <= y;
    case 6:
      return sqrt(x);
    case 7:
      return abs(x);
    default:
      return real(x);
  }
}

PyScalar compute(const PyScalar& x, int operation, const PyScalar& y) {
  const StateRef& state = x.state() ? x.state() : y.state();
  if (!state) return {nullptr, computed(operation, *x, *y)};
  return {state, submit(state, [&] { return computed(operation, *x, *y); })};
}

std::complex<double> read(const PyScalar& x) {
  if (x.state())
    block_in_slices(x.state()->engine, -1,
                    [scalar = *x](Engine&, double seconds) { scalar.wait(seconds); });
  const GilReleased released;
  return (*x).complex_value();
}

PyVector sum(const PyVector& x, const PyVector& y) {
  return {x.state(), submit(x.state(), [&] { return *x + *y; })};
}
PyVector difference(const PyVector& x, const PyVector& y) {
  return {x.state(), submit(x.state(), [&] { return *x - *y; })};
}
PyVector scaled(const PyVector& x, const PyScalar& factor) {
  return {x.state(), submit(x.state(), [&] { return *factor * *x; })};
}
PyVector divided(const PyVector& x, const PyScalar& divisor) {
  return {x.state(), submit(x.state(), [&] { return *x / *divisor; })};
}
PyVector times(const PyVector& x, const PyVector& y) {
  return {x.state(), submit(x.state(), [&] { return *x * *y; })};
}
PyScalar dot(const PyVector& x, const PyVector& y) {
  return {x.state(), submit(x.state(), [&] { return dot(*x, *y); })};
}
void add(PyVector& x, const PyVector& y) {
  submit(x.state(), [&] { *x += *y; });
}
void subtract(PyVector& x, const PyVector& y) {
  submit(x.state(), [&] { *x -= *y; });
}
void scale(PyVector& x, const PyScalar& factor) {
  submit(x.state(), [&] { *x *= *factor; });
}
PyVector copy(const PyVector& x) { return {x.state(), *x}; }

/// A call that blocks, with memory of the caller's.
template <class Work>
void block_with(const StateRef& state, const nb::object& keep, Work work) {
  auto memory = std::make_shared<Keep>();
  memory->add(keep);
  block(state->engine, {[state, work] {
                          const std::lock_guard lock(state->mutex);
                          work(*state);
                        },
                        std::move(memory), std::make_shared<Progress>(), nb::none()});
}

void copy_to(const PyVector& x, ArrayAddress out, const nb::object& keep) {
  block_with(x.state(), keep,
             [vector = *x, out](MatrixState&) { vector.copy_to(reinterpret_cast<void*>(out)); });
}

class PyMatrix {
 public:
  /// `a`: a CsrView, or a RowSource.
  template <class Rows>
  PyMatrix(const PyEngine& engine, const Rows& a, const sparse::SolverOptions& options,
           const nb::object& keep)
      : state_(std::make_shared<MatrixState>()) {
    state_->engine = engine.state();
    block_with(state_, keep, [a, options](MatrixState& state) {
      state.matrix.emplace(state.engine->engine(), a, options);
    });
  }
  PyMatrix(PyMatrix&&) = default;
  PyMatrix& operator=(PyMatrix&&) = delete;
  ~PyMatrix() {
    if (!state_) return;
    if (inside_body()) {
      end_elsewhere(std::move(state_));
      return;
    }
    const GilReleased released;
    state_.reset();
  }

  PyVector vector(ArrayAddress elements, const nb::object& keep) const {
    auto made = std::make_shared<std::optional<sparse::Vector>>();
    block_with(state_, keep, [made, elements](MatrixState& state) {
      *made = state.matrix->vector(reinterpret_cast<const void*>(elements));
    });
    return {state_, std::move(**made)};
  }
  PyVector zeros() const {
    return {state_, submit(state_, [this] { return state_->matrix->zeros(); })};
  }
  PyVector product(const PyVector& x) const {
    return {state_, submit(state_, [&] { return *state_->matrix * *x; })};
  }

 private:
  StateRef state_;
};

template <class Rows>
PyMatrix make_matrix(const PyEngine& engine, const Rows& a, const sparse::SolverOptions& options,
                     const nb::object& keep) {
  return {engine, a, options, keep};
}

}  // namespace

void bind_sparse_vectors(nb::module_& module) {
  nb::class_<PyScalar>(module, "SparseScalar", "A number on a device, or a constant.")
      .def(nb::new_(&constant), nb::arg("value"))
      .def("compute", &compute, nb::arg("operation"), nb::arg("other"))
      .def("read", &read)
      .def_prop_ro("is_complex", [](const PyScalar& self) { return (*self).is_complex(); });
  nb::class_<PyVector>(module, "SparseVector", "A vector in parts on the devices.")
      .def("sum", &sum, nb::arg("other"))
      .def("difference", &difference, nb::arg("other"))
      .def("scaled", &scaled, nb::arg("factor"))
      .def("divided", &divided, nb::arg("divisor"))
      .def("times", &times, nb::arg("other"))
      .def("dot", &dot, nb::arg("other"))
      .def("add", &add, nb::arg("other"))
      .def("subtract", &subtract, nb::arg("other"))
      .def("scale", &scale, nb::arg("factor"))
      .def("copy", &copy)
      .def("copy_to", &copy_to, nb::arg("out"), nb::arg("keep"));
  nb::class_<PyMatrix>(module, "SparseMatrix", "A matrix in parts on the devices.")
      .def(nb::new_(&make_matrix<sparse::CsrView>), nb::arg("engine"), nb::arg("a"),
           nb::arg("options"), nb::arg("keep"))
      .def(nb::new_(&make_matrix<sparse::RowSource>), nb::arg("engine"), nb::arg("a"),
           nb::arg("options"), nb::arg("keep"))
      .def("vector", &PyMatrix::vector, nb::arg("elements"), nb::arg("keep"))
      .def("zeros", &PyMatrix::zeros)
      .def("product", &PyMatrix::product, nb::arg("x"));
}

}  // namespace quadriga::python
