// SPDX-License-Identifier: BSD-3-Clause
// src/base/peer_file.cpp: pidfd_getfd, which older libraries have no function for.
#include "base/peer_file.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace quadriga {

int file_of_process(int process, int descriptor) noexcept {
#ifdef SYS_pidfd_getfd
  constexpr long number = SYS_pidfd_getfd;
#else
  constexpr long number = 438;
#endif
  return static_cast<int>(syscall(number, process, descriptor, 0));
}

}  // namespace quadriga
