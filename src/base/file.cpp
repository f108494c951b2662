// SPDX-License-Identifier: BSD-3-Clause
// src/base/file.cpp: kinds of files.
#include "base/file.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/stat.h>

namespace quadriga {

void require_regular(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  fail(Errc::io,
       S_ISDIR(status.st_mode)
           ? fmt::format("{}: is a folder; expected a file", path)
           : fmt::format("{}: is not a regular file; pipes and devices aren't accepted", path));
}

}  // namespace quadriga
