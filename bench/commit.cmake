# SPDX-License-Identifier: BSD-3-Clause
# bench/commit.cmake: writes commit.cpp; runs at every build, and touches the file only if it changes.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --tags
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "commit.h"

namespace quadriga::bench {
std::string_view built_from() noexcept { return "@commit@"; }
}  // namespace quadriga::bench
]])
