// SPDX-License-Identifier: BSD-3-Clause
// src/bad_columns.cpp: a comment that goes on behind column 100, which clang-format leaves as it stands.

// Whoever reads two files side by side has room for a hundred columns each, and none for this word.
int columns() { return 100; }
