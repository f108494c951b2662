// SPDX-License-Identifier: BSD-3-Clause
// good.cpp: as it should be.
int good() { return 1; }
