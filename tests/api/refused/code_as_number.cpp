// SPDX-License-Identifier: BSD-3-Clause
// tests/api/refused/code_as_number.cpp: codes of errors are names, whose numbers mean nothing.
//
// expected: cannot convert 'quadriga::Errc' to 'int'
#include <quadriga/error.h>

int bad(const quadriga::Error& error) { return error.code(); }
