// SPDX-License-Identifier: BSD-3-Clause
// python/src/factor.cpp: Cholesky factors whose tiles stay where they are.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "bindings.h"
#include "blocking.h"
#include "body.h"
#include "py_linalg.h"

namespace quadriga::python {
namespace {

using linalg::Factor;
using linalg::Matrix;

/// A factor, its engine and the memory that it lives in, let go in this order.
class PyFactor {
 public:
  PyFactor(std::shared_ptr<EngineState> state, Factor factor, const nb::object& memory)
      : state_(std::move(state)), factor_(std::move(factor)) {
    memory_->add(memory);
  }
  PyFactor(PyFactor&&) = default;
  PyFactor& operator=(PyFactor&&) = delete;
  ~PyFactor() {
    if (!state_) return;
    if (inside_body()) {
      std::pair last(std::move(state_), std::move(factor_));  // of a pair, the second goes first
      end_elsewhere(std::pair(std::move(memory_), std::move(last)));
      return;
    }
    // Bringing a factor home takes time.
    const GilReleased released;
    factor_ = Factor();
    state_.reset();
  }

  const Factor& factor() const noexcept { return factor_; }

  /// As py_linalg.h's call(): the work gets the factor, the memory is kept until it has ended.
  template <class Work>
  void run(const CallOptions& options, Work work) const {
    call(state_, options,
         [factor = factor_, memory = memory_, work](Engine&, const linalg::Options& given) {
           work(factor, given);
         });
  }

 private:
  std::shared_ptr<Keep> memory_ = std::make_shared<Keep>();
  std::shared_ptr<EngineState> state_;
  Factor factor_;
};

linalg::Uplo uplo_of(bool lower) { return lower ? linalg::Uplo::lower : linalg::Uplo::upper; }

PyFactor cho_factor(const PyEngine& engine, const Matrix& a, bool lower, bool overwrite, bool lazy,
                    const CallOptions& options) {
  const auto state = engine.state();
  auto made = std::make_shared<Factor>();
  call(state, options, [made, a, lower, overwrite, lazy](Engine& e, const linalg::Options& given) {
    *made = linalg::cho_factor(e, a, {uplo_of(lower), overwrite, lazy}, given);
  });
  return {state, std::move(*made), overwrite ? options.keep : nb::none()};
}

PyFactor factor_from(const PyEngine& engine, const Matrix& c, bool lower,
                     const CallOptions& options) {
  const auto state = engine.state();
  auto made = std::make_shared<Factor>();
  call(state, options, [made, c, lower](Engine& e, const linalg::Options& given) {
    *made = linalg::factor_from(e, c.view(), uplo_of(lower), given);
  });
  return {state, std::move(*made), options.keep};
}

PyFactor load(const PyEngine& engine, const std::string& path, const CallOptions& options) {
  const auto state = engine.state();
  auto made = std::make_shared<Factor>();
  call(state, options,
       [made, path](Engine& e, const linalg::Options&) { *made = Factor::load(e, path); });
  return {state, std::move(*made), nb::none()};
}

double logdet(const PyFactor& self, const CallOptions& options) {
  auto value = std::make_shared<double>();
  self.run(options,
           [value](const Factor& factor, const linalg::Options&) { *value = factor.logdet(); });
  return *value;
}

void inverse_diagonal(const PyFactor& self, std::uintptr_t address, const CallOptions& options) {
  const std::span<double> out(reinterpret_cast<double*>(address),
                              static_cast<std::size_t>(self.factor().order()));
  self.run(options, [out](const Factor& factor, const linalg::Options& given) {
    factor.inverse_diagonal(out, given);
  });
}

nb::tuple held(const PyFactor& self) {
  linalg::Held where;
  {
    const GilReleased released;
    where = self.factor().held();
  }
  return nb::make_tuple(where.bytes, where.device_bytes, where.buffer_bytes);
}

}  // namespace

void bind_factor(nb::module_& module) {
  nb::class_<PyFactor>(module, "Factor", "A Cholesky factor on an engine.")
      .def("order", [](const PyFactor& self) { return self.factor().order(); })
      .def("tile", [](const PyFactor& self) { return self.factor().tile(); })
      .def("dtype", [](const PyFactor& self) { return self.factor().dtype(); })
      .def("lower", [](const PyFactor& self) { return self.factor().lower(); })
      .def(
          "solve",
          [](const PyFactor& self, const Matrix& b, const CallOptions& options) {
            self.run(options, [b](const Factor& factor, const linalg::Options& given) {
              factor.solve(b.view(), given);
            });
          },
          nb::arg("b"), nb::arg("options"))
      .def("logdet", logdet, nb::arg("options"))
      .def("inverse_diagonal", inverse_diagonal, nb::arg("address"), nb::arg("options"))
      .def(
          "unpack",
          [](const PyFactor& self, const Matrix& out, bool clean, const CallOptions& options) {
            const auto other = clean ? linalg::Other::zero : linalg::Other::leave;
            self.run(options, [out, other](const Factor& factor, const linalg::Options&) {
              factor.unpack(out.view(), other);
            });
          },
          nb::arg("out"), nb::arg("clean"), nb::arg("options"))
      .def(
          "bring_home",
          [](const PyFactor& self, const CallOptions& options) {
            self.run(options,
                     [](const Factor& factor, const linalg::Options&) { factor.bring_home(); });
          },
          nb::arg("options"))
      .def(
          "save",
          [](const PyFactor& self, const std::string& path, const CallOptions& options) {
            self.run(options,
                     [path](const Factor& factor, const linalg::Options&) { factor.save(path); });
          },
          nb::arg("path"), nb::arg("options"))
      .def("held", held, nb::sig("def held(self) -> tuple[int, list[int], int]"));
  module.def("cho_factor", cho_factor, nb::arg("engine"), nb::arg("a"), nb::arg("lower"),
             nb::arg("overwrite"), nb::arg("lazy"), nb::arg("options"));
  module.def("factor_from", factor_from, nb::arg("engine"), nb::arg("c"), nb::arg("lower"),
             nb::arg("options"));
  module.def("load_factor", load, nb::arg("engine"), nb::arg("path"), nb::arg("options"));
}

}  // namespace quadriga::python
