// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/good.h: cheap and complete.
#pragma once

#include <cstddef>

std::size_t good();
