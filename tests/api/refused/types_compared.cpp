// SPDX-License-Identifier: BSD-3-Clause
// tests/api/refused/types_compared.cpp: an access mode is no element type.
//
// expected: no match for 'operator=='
#include <quadriga/types.h>

bool bad() { return quadriga::Access::read == quadriga::DType::float32; }
