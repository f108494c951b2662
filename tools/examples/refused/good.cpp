// SPDX-License-Identifier: BSD-3-Clause
// good.cpp: is refused as it says.
//
// expected: invalid conversion from 'int' to 'int\*'
int* good() { return 1 + 1; }
