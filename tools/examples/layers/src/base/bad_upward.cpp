// SPDX-License-Identifier: BSD-3-Clause
// src/base/bad_upward.cpp: uses a room to its right.
#include "graph/graph.h"
