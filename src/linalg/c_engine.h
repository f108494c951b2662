// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/c_engine.h: what quadriga.h hands out.
#pragma once

#include <quadriga/engine.h>

struct quadriga_engine {
  quadriga::Engine engine;
};
