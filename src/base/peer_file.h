// SPDX-License-Identifier: BSD-3-Clause
// src/base/peer_file.h: files of other processes of this user.
#pragma once

namespace quadriga {

/// A descriptor of this process for the file behind a descriptor of another one, given by a
/// descriptor of that process (pidfd). The caller closes it; -1, and errno, if the system refuses:
/// it permits this to whom it permits to debug that process, or is too old.
int file_of_process(int process, int descriptor) noexcept;

}  // namespace quadriga
