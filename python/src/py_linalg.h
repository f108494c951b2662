// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_linalg.h: matrices, sources and calls of the linear algebra as Python gives them.
#pragma once

#include <nanobind/nanobind.h>
#include <quadriga/linalg.h>

#include <cstdint>
#include <memory>

#include "blocking.h"
#include "py_engine.h"

namespace quadriga::python {

/// What every call of the linear algebra takes beside its matrices.
struct CallOptions {
  std::int64_t tile = 0;
  std::optional<bool> reproducible;
  nb::object keep;      ///< Arrays and sources, held until the work has ended.
  nb::object progress;  ///< Called with the fraction done, by the caller's thread; or none.
};

/// Runs `work(engine, options)` as a blocking call; it must hold all it needs by value.
template <class Work>
void call(const std::shared_ptr<EngineState>& state, const CallOptions& given, Work work) {
  auto progress = std::make_shared<Progress>();
  auto keep = std::make_shared<Keep>();
  keep->add(given.keep);
  linalg::Options options;
  options.tile = given.tile;
  options.reproducible = given.reproducible;
  options.progress = [progress](double fraction) { return progress->report(fraction); };
  block(state, {[state, options, work] { work(state->engine(), options); }, std::move(keep),
                std::move(progress), given.progress});
}

/// A source whose elements a Python callable writes.
std::shared_ptr<linalg::Source> python_source(std::int64_t rows, std::int64_t cols, DType dtype,
                                              bool hermitian, const nb::callable& read,
                                              long long number);

void bind_matrix(nb::module_& module);
void bind_factor(nb::module_& module);
void bind_linalg(nb::module_& module);

}  // namespace quadriga::python
