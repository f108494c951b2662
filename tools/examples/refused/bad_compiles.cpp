// SPDX-License-Identifier: BSD-3-Clause
// bad_compiles.cpp: is said to be refused, and isn't.
//
// expected: cannot convert
int bad() { return 1; }
