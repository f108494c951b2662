// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/world.h: the ranks of this host that have the library, and who they are in the program's
// communicators.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "message/communicator.h"
#include "mpi/job.h"
#include "mpi/native.h"
#include "mpi/probed_sends.h"
#include "mpi/switches.h"

namespace quadriga::mpi {

/// From MPI_Init to MPI_Finalize. All is made before the program's threads call MPI, and constant
/// afterwards, but for counters and next_tag.
struct World {
  explicit World(const Switches& read) : switches(read) {}

  const Switches switches;
  Job job;
  MPI_Comm comm = MPI_COMM_NULL;  ///< Those with the library: our own use of MPI.
  std::unique_ptr<message::CommunicatorCore> core;
  std::unique_ptr<ProbedSends> probed;   ///< Null: synchronous sends are MPI's.
  std::array<unsigned char, 16> mark{};  ///< At the head of all envelopes; nobody guesses it.
  std::atomic<std::uint32_t> next_tag{0};
  MpiCounters counters;
};

/// What each call asks first; constant from MPI_Init to MPI_Finalize.
struct Taken {
  bool receives = false;  ///< Some rank may send envelopes to this one.
  bool sends = false;     ///< This one may send envelopes.
  bool locked = false;    ///< Several threads may be in MPI at once.
};
extern Taken taken;
/// Null before MPI_Init and after MPI_Finalize, and if the library is off.
extern World* world;

/// Around MPI_Init and MPI_Init_thread. Says on standard error what went wrong; then nothing is
/// taken over.
void before_init() noexcept;
void after_init(int thread_level) noexcept;
/// Before MPI_Finalize: returns once all ranks with the library have come.
void before_finalize() noexcept;

/// MPI moves on. Nobody sends on the communicator that is looked at.
void let_progress() noexcept;

/// The number among those with the library of a communicator's rank (its remote group's, if it has
/// one); -1 if it hasn't the library, or isn't a rank.
int peer_of(MPI_Comm comm, int rank) noexcept;

}  // namespace quadriga::mpi
