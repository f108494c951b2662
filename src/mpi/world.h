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
/// afterwards, but for counters, next_tag and next_group, which only collectives change.
struct World {
  explicit World(const Switches& read) : switches(read) {}

  const Switches switches;
  Job job;
  MPI_Comm comm = MPI_COMM_NULL;  ///< Those with the library: our own use of MPI.
  std::unique_ptr<message::CommunicatorCore> core;
  std::unique_ptr<ProbedSends> probed;   ///< Null: synchronous sends are MPI's.
  std::array<unsigned char, 16> mark{};  ///< At the head of all envelopes; nobody guesses it.
  std::atomic<std::uint32_t> next_tag{0};
  std::array<bool, functions> shared{};  ///< What all ranks with the library take over.
  std::vector<int> opens;                ///< Of each of them: whether it opens envelopes.
  bool is_joined = false;                ///< All of them have joined: messages may be ours.
  bool is_counted = false;               ///< The first of them prints counters.
  int next_group = 0;  ///< For the next communicator that collectives of ours are called on.
  MpiCounters counters;

  bool is_shared(Function function) const noexcept {
    return shared[static_cast<std::size_t>(function)];
  }
};

/// What each call asks first; constant from MPI_Init to MPI_Finalize.
struct Taken {
  bool receives = false;  ///< Some rank may send envelopes.
  bool opens = false;     ///< It may send them to this one.
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
/// Whether a communicator's ranks are those with the library, in their order.
bool is_whole(MPI_Comm comm) noexcept;
/// Ours of the ranks of a whole communicator, under a number that all of them give at its first
/// use, and no other communicator has.
message::CommunicatorCore& core_of(MPI_Comm comm, int number);

}  // namespace quadriga::mpi
