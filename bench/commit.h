// SPDX-License-Identifier: BSD-3-Clause
// bench/commit.h: the commit that the program was built from; written by commit.cmake.
#pragma once

#include <string_view>

namespace quadriga::bench {

/// As `git describe --always --dirty` said; empty where there was no repository.
std::string_view built_from() noexcept;

}  // namespace quadriga::bench
