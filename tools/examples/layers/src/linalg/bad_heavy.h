// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/bad_heavy.h: a header with a heavy library.
#pragma once

#include <fmt/format.h>
