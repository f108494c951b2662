// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/message.h: ranks that exchange messages; names and meaning are mpi4py's.
#pragma once

#include <quadriga/message_buffer.h>
#include <quadriga/message_prediction.h>
#include <quadriga/message_request.h>
#include <quadriga/message_types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga::message {

/// Ranks of one host that exchange messages, made by world(), join(), local() or Split().
///
/// A message's elements must be those that its receive expects, in type and order; the receive may
/// be longer. Collectives are called by all ranks in the same order, by one thread at a time; all
/// else by any thread. Copies are the same communicator; the last one to end closes it.
/// Errors of all calls: invalid_argument (a rank, tag or array; of collectives on all ranks, if
/// what they asked for differs); peer_lost (PeerLost); deadline, saying what each rank waits for:
/// a blocking call is withdrawn then; cancelled; unavailable once closed, or after fork().
class Communicator {
 public:
  int rank() const noexcept;
  int size() const noexcept;
  /// What holds for calls that have no deadline of their own; nothing: they wait for ever.
  Seconds deadline() const noexcept;
  void set_deadline(Seconds seconds) const;

  /// Returns once the elements may be changed again.
  void send(const SendBuffer& from, int destination, int tag = 0, Seconds deadline = {}) const;
  Status recv(const ReceiveBuffer& into, int source = any_source, int tag = any_tag,
              Seconds deadline = {}) const;
  Request isend(const SendBuffer& from, int destination, int tag = 0) const;
  Request irecv(const ReceiveBuffer& into, int source = any_source, int tag = any_tag) const;
  /// Sends and receives at once.
  Status sendrecv(const SendBuffer& from, int destination, const ReceiveBuffer& into,
                  int source = any_source, int send_tag = 0, int receive_tag = any_tag,
                  Seconds deadline = {}) const;
  /// Waits for a message without receiving it.
  Status probe(int source = any_source, int tag = any_tag, Seconds deadline = {}) const;
  /// Which message could be received now.
  std::optional<Status> iprobe(int source = any_source, int tag = any_tag) const;

  /// How send() of these elements would go: its paths, of which one is chosen, with the reason, and
  /// the seconds that each takes to a receive that was posted before. Sends nothing.
  ///
  /// `into` is memory of this process like the receive's, on the same kind of device; without it,
  /// `from` itself. Rates are measured for the host and stated by a machine's links for devices.
  /// Errors: those of send() for ranks.
  std::vector<PredictedPath> predict(const SendBuffer& from, int destination) const;
  std::vector<PredictedPath> predict(const SendBuffer& from, int destination,
                                     const SendBuffer& into) const;

  /// Prepares sends and receives that are started together; those between two ranks meet in the
  /// order in which both sides list them.
  ExchangePlan plan(std::span<const PlannedSend> sends,
                    std::span<const PlannedReceive> receives) const;

  /// Waits until all ranks have come here.
  void barrier(Seconds deadline = {}) const;
  /// Copies the root's elements to all ranks.
  void bcast(const ReceiveBuffer& elements, int root = 0, Seconds deadline = {}) const;
  /// Combines the ranks' elements on the root; `into`, as long, counts there only. The order of
  /// operations depends on size and root alone, of few bytes also on whether all are on the host,
  /// of arrays on devices on their links' rate and on what a message costs there (`message` of the
  /// machine's description): results are the same to the bit on any cores. With
  /// reproducible(operation) size, place and links don't count.
  void reduce(const SendBuffer& from, const ReceiveBuffer& into, ReduceRule by = {}, int root = 0,
              Seconds deadline = {}) const;
  /// The same on all ranks; `into` may be `from`.
  void allreduce(const SendBuffer& from, const ReceiveBuffer& into, ReduceRule by = {},
                 Seconds deadline = {}) const;
  /// Of one number a rank.
  template <Element T>
  T allreduce(T value, ReduceRule by = {}, Seconds deadline = {}) const {
    const std::span<T> one(&value, 1);
    allreduce(one, one, by, deadline);
    return value;
  }
  /// The ranks' elements one after the other: size() times those of `from`, on the root only.
  void gather(const SendBuffer& from, const ReceiveBuffer& into, int root = 0,
              Seconds deadline = {}) const;
  /// The same on all ranks.
  void allgather(const SendBuffer& from, const ReceiveBuffer& into, Seconds deadline = {}) const;
  /// Gives each rank its part of the root's elements, in order; `from` counts on the root only.
  void scatter(const SendBuffer& from, const ReceiveBuffer& into, int root = 0,
               Seconds deadline = {}) const;
  /// Both hold a part for each rank, in order; `into` may be `from`.
  void alltoall(const SendBuffer& from, const ReceiveBuffer& into, Seconds deadline = {}) const;
  /// The ranks that give the same color, ordered by key, then rank; a negative color: none.
  std::optional<Communicator> Split(int color = 0, int key = 0, Seconds deadline = {}) const;

  /// The ranks that are left, in their order, once others were lost. All that are left call it,
  /// each once for each loss, and get the same ranks whatever each of them knows; nobody waits.
  /// What else is under way in this communicator raises peer_lost.
  Communicator shrink() const;

  /// Leaves the world, for this and all communicators made of it, once own sends have been
  /// received; says which weren't in time, or nothing. Without it the last copy's end does so,
  /// within 5 s, and logs them.
  std::string close(double seconds = 5) const;

  struct Common;
  explicit Communicator(std::shared_ptr<Common> state) : state_(std::move(state)) {}
  Common& common() const noexcept { return *state_; }

 private:
  std::shared_ptr<Common> state_;
};

/// How long a world waits for its ranks, and what deadline its calls have.
struct StartOptions {
  double patience = 60;  ///< Seconds until all ranks must have come.
  Seconds deadline = {};
};

/// All processes that `quadriga launch` or torchrun started on this host; else this one alone.
/// Errors:  invalid_argument, naming it, if a launcher's variable is wrong or absent; unavailable
///          if the ranks are on several hosts; those of join().
Communicator world(const StartOptions& options = {});

/// Becomes a rank of a world of processes of one user on this host; returns once all have come.
///
/// `address` is "file:PATH" or "tcp:127.0.0.1:PORT", `token` is new_token()'s; both the same on all
/// ranks. The token is proved, not sent; nothing stays at the address.
/// Errors:  deadline naming the ranks that didn't come; invalid_argument if rank 0 has another
///          token or size, or the rank is taken; peer_lost; unavailable.
Communicator join(const std::string& address, int rank, int size, std::string_view token,
                  const StartOptions& options = {});

/// A world whose ranks are threads of this process, by rank.
std::vector<Communicator> local(int ranks, Seconds deadline = {});

/// For join(), made by one rank and told to the others, as by MPI_Bcast in a program that an MPI
/// started: an address of this host, and 128 bits as 32 hexadecimal digits, that nobody can guess.
/// Errors: unavailable.
std::string new_address();
std::string new_token();

}  // namespace quadriga::message
