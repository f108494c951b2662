// SPDX-License-Identifier: BSD-3-Clause
// tests/api/refused/data_from_pointer.cpp: a handle can't be made from a pointer.
//
// expected: could not convert .*|no matching function|cannot convert
#include <quadriga/engine.h>

quadriga::Data bad(double* home) { return home; }
