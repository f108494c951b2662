// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/bad_alone.h: uses a type that it does not include.
#pragma once

std::string bad();
