// SPDX-License-Identifier: BSD-3-Clause
// src/graph/bad_relative.cpp: names a room to its right by a relative path.
#include "../linalg/tiles.h"
