// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/elementwise.h: codelets of functors, for tests that g++ compiles.
#pragma once

#include <quadriga/codelet.h>

namespace quadriga {

/// Parameters of the codelets below.
struct Factor {
  double value = 0;
};

/// y += value*x on doubles (read, update).
Codelet elementwise_axpy();
/// z = value*x*y on a double, a float and a double (read, read, write).
Codelet elementwise_product();

}  // namespace quadriga
