// SPDX-License-Identifier: BSD-3-Clause
// include/inner/bad_format.h: stands between a header and a heavy library.
#pragma once

#include <fmt/core.h>
