// SPDX-License-Identifier: BSD-3-Clause
// bad_reason.cpp: is refused for another reason than it says.
//
// expected: use of deleted function
int bad() { return undeclared; }
