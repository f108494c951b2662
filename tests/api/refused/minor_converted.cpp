// SPDX-License-Identifier: BSD-3-Clause
// tests/api/refused/minor_converted.cpp: a number is no error by itself.
//
// expected: could not convert|no matching function|invalid initialization
#include <quadriga/error.h>

void take(const quadriga::NotPositiveDefinite& error);
void bad() { take(3); }
