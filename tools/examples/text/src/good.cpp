// SPDX-License-Identifier: BSD-3-Clause
// src/good.cpp: as it should be.
int good() { return 1; }
