// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/introduction.h: what the ranks with the library say of themselves at MPI_Init, at once.
//
// Each collective call that a start takes costs a time slice or more where ranks that wait keep
// their cores busy, and programs that need none of this pay for it, too.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "mpi/native.h"
#include "mpi/probed_sends.h"
#include "mpi/switches.h"

namespace quadriga::mpi {

/// Where the ranks join; the first one's.
struct JoiningPlace {
  char address[128] = {};  ///< Empty: it has no place.
  char token[64] = {};
  std::array<unsigned char, 16> mark{};  ///< At the head of all envelopes; nobody guesses it.
  ProbedSends::File probed;
};

struct Introduction {
  bool sends = false;                   ///< It has devices, or the test mode.
  bool opens = false;                   ///< It opens envelopes.
  bool counts = false;                  ///< It would print counters.
  std::array<bool, functions> takes{};  ///< Functions that it takes over.
  JoiningPlace place;
};

/// Of all ranks of a communicator, in order; each calls it with its own.
std::vector<Introduction> introductions(const Introduction& own, MPI_Comm comm, std::size_t ranks);
/// A place for so many ranks to meet at, made by the first one.
JoiningPlace joining_place(int ranks);

}  // namespace quadriga::mpi
