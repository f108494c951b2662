// SPDX-License-Identifier: BSD-3-Clause
// src/other_name.cpp: names another path.
int bad() { return 1; }
