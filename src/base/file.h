// SPDX-License-Identifier: BSD-3-Clause
// src/base/file.h: checks that a path names a file that can be read or written without blocking.
#pragma once

#include <string>

namespace quadriga {

/// Refuses pipes and devices, whose opening may wait for ever; what is missing is no concern.
///
/// Errors:  io naming the path.
void require_regular(const std::string& path);

}  // namespace quadriga
