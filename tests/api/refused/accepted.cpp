// SPDX-License-Identifier: BSD-3-Clause
// tests/api/refused/accepted.cpp: should compile, so that the others fail for their own reasons.
//
// expected: nothing
#include <quadriga/engine.h>

quadriga::Data good(quadriga::Engine& engine, double* home) {
  return engine.data(home, 1, 1, 1, quadriga::DType::float64);
}
