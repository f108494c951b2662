// SPDX-License-Identifier: BSD-3-Clause
// src/base/number_type.h: from a type's name at run time to the C++ type.
#pragma once

#include <quadriga/error.h>
#include <quadriga/types.h>

#include <complex>

namespace quadriga {

/// Returns body.template operator()<T>(), T the type that `dtype` names.
/// Errors:  invalid_argument for DType::bytes.
template <class Body>
auto with_number_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::float32:
      return body.template operator()<float>();
    case DType::float64:
      return body.template operator()<double>();
    case DType::complex64:
      return body.template operator()<std::complex<float>>();
    case DType::complex128:
      return body.template operator()<std::complex<double>>();
    case DType::bytes:
      break;
  }
  fail(Errc::invalid_argument, "expected float32, float64, complex64 or complex128, not bytes");
}

}  // namespace quadriga
