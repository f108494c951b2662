// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/bad_missing.cpp: a file that is not there.
#include "linalg/nothing.h"
