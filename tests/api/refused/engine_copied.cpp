// SPDX-License-Identifier: BSD-3-Clause
// tests/api/refused/engine_copied.cpp: an engine owns threads and memory, so it has no copies.
//
// expected: use of deleted function
#include <quadriga/engine.h>

void bad(const quadriga::Engine& engine) { quadriga::Engine copy(engine); }
