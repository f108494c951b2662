// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint.h: one rank's end of all messages: its lock, its waits, its end.
//
// Invariants
//   1. mutex_ guards everything but what is atomic or const. Nobody waits for another rank, or
//      calls foreign code, while holding it.
//   2. Any call moves all messages of the rank on, not only its own. A call that ends others' calls
//      rings the own bell.
//   3. The service thread moves messages while no call attends to them (attendance.h). Else it
//      sleeps in poll(), on the ends of the other processes and on its eventfd; while a large
//      message needs this rank, 100 ms at a time: a rank that is stopped exactly between disarming
//      the bell and waking delays it by that.
//   4. A wait ends by what it waits for, by the loss of a rank that it needs, by its deadline, or
//      by what its interrupt throws; it sleeps 50 ms at a time. One that withdraws a send ends
//      after `patience_while_held` at the latest.
//   5. What ended transfers kept is destroyed without the lock: it may call anything.
//   6. In a child after fork() nothing is touched: calls throw, the destructor leaves all as it is.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "message/attendance.h"
#include "message/path_prediction.h"
#include "message/posting.h"
#include "message/wire/agreement.h"

namespace quadriga::message {

class Endpoint {
 public:
  Endpoint(std::shared_ptr<SharedSegment> segment, int rank, std::vector<Member> members);
  /// Closes it, waiting at most `patience_at_end` for own sends.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  static constexpr double patience_at_end = 5;
  /// Seconds for which who withdraws sends waits for devices of other ranks that read them.
  static constexpr double patience_while_held = 1;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return segment_->shape().ranks; }
  /// Of host memory: so many bytes travel with their envelope, without waiting for their receive.
  std::size_t slot_bytes() const noexcept;

  /// Returns once the memory may be used again.
  /// Errors:  peer_lost; deadline, cancelled or what the interrupt throws: it was withdrawn then.
  void send(const Posting& message, const Patience& patience);
  MessageStatus receive(const Posting& message, const Patience& patience);
  TransferPtr start_send(const Posting& message);
  TransferPtr start_receive(const Posting& message);
  /// What devices do for this rank alone, as a receive of `what` that needs nobody.
  TransferPtr start_move(const Posting& what, std::shared_ptr<DeviceMove> move);
  /// Rethrows the transfer's error. Errors: deadline: the transfer goes on.
  /// A receive that is ordered with a stream is waited for by that from when it is queued on.
  MessageStatus wait(const TransferPtr& transfer, const Patience& patience);
  /// Returns once at least one of them has ended; says nothing of their errors.
  /// Errors: deadline, or what the interrupt throws; the transfers go on.
  void wait_any(std::span<const TransferPtr> transfers, const Patience& patience);
  bool test(const TransferPtr& transfer);
  /// Starts transfers in order, under one lock, once more: they have ended. Each holds `keep`
  /// until it has ended again.
  void start_all(std::span<const TransferPtr> transfers, const std::shared_ptr<void>& keep);
  /// Moves messages until `is_over()` of transfers; `what` is said of it. Errors: deadline.
  void wait_for(const std::function<bool()>& is_over, const Posting& what,
                const Patience& patience);
  /// Waits until a stream has come as far as a collective asks, which is `what`, and moves messages
  /// meanwhile. Errors: deadline; device_lost; what the interrupt or check() throws.
  void await_stream(StreamOrder& order, const Posting& what, const Patience& patience);
  /// The same of what a device does for a collective otherwise than by messages. `is_over` is
  /// called without the lock and may throw; `late` says what wasn't over in time.
  void await_work(const std::function<bool()>& is_over, const Posting& what,
                  const Patience& patience, const char* late);
  /// Withdraws a transfer; false if it has ended, or a stream waits for its end. Its memory isn't
  /// used any more: what another's device copies of it already is waited for. False also if that
  /// takes longer than `patience_while_held`: its process is stopped, and the transfer goes on.
  /// A send whose receiver has begun to read it may be kept: false at once, and it goes on.
  bool cancel(const TransferPtr& transfer, BegunSends begun = BegunSends::withdrawn);
  /// The oldest message that a receive would get; without `patience` only one that is there.
  std::optional<MessageStatus> probe(const Posting& message,
                                     const std::optional<Patience>& patience);
  /// Cancels a transfer unless it has ended, and sees that it has; whether it was cancelled. One
  /// that goes on is logged.
  bool withdraw(const TransferPtr& transfer);
  /// Errors: peer_lost if a rank of the group is lost; cancelled if the context was aborted;
  ///         unavailable once closed or after fork().
  void check(const Group& group, CallKind operation, std::uint64_t context);
  /// Ends all transfers of a context on all ranks of a group, now and later, as far as these are
  /// reached: a rank whose ring is full isn't.
  /// `lost` is the rank of the world that is lost, if that is why; else -1.
  void abort(const Group& group, std::uint64_t context, const std::string& why, int lost) noexcept;

  /// Ends them since a rank of the world is lost or gone and the others go on without it.
  void revoke(const Group& group, std::uint64_t context, int lost) noexcept;
  /// The ranks of a group that are here and were named by no abort of its two contexts, as the
  /// first rank knows that asks by this key.
  RankSet agree_on_present(const Group& group, std::uint64_t context, std::uint64_t key);

  /// Waits for own sends, then leaves. What is open when that ends early is cancelled, but for
  /// what another's device reads as of cancel(); says what it was.
  std::string close(const Patience& patience);
  bool is_closed();
  /// Calls a function at the beginning of close(), by its thread.
  void on_close(std::function<void()> function);
  /// How messages from another rank's memory of devices arrive here, and from this one's there.
  struct PairReport {
    PairPath in = PairPath::unknown;
    PairPath out = PairPath::unknown;
    std::uint64_t opened = 0;  ///< Of its allocations so far.
    std::size_t open = 0;      ///< Of them, now.
  };
  PairReport pair(int rank);
  /// How a message to a rank of the world would go; `into` is memory like the receive's.
  std::vector<PredictedPath> predict(const MessageBuffer& from, int peer,
                                     const MessageBuffer& into);
  /// As if this rank had found it out of another one's memory of devices.
  void force_path(int rank, PairPath path);
  /// Whether a rank of the world is here, as far as this one knows.
  Presence presence(int rank);

  /// While it lives, its thread starts messages and waits for them in turns that are short: nobody
  /// else has to move them, so that what is started wakes no other thread.
  class Tending {
   public:
    explicit Tending(Endpoint& endpoint);
    ~Tending();
    Tending(const Tending&) = delete;
    Tending& operator=(const Tending&) = delete;

   private:
    Endpoint& endpoint_;
  };
  /// How often calls woke the service thread to go on with what they had started.
  std::uint64_t handed_over();

 private:
  enum class Polled { nothing, moved, over };
  class Hold;
  struct Attention;
  struct ProbeNote;
  void check_usable() const;
  template <class Over>
  void wait_until(const Over& is_over, const Posting& what, const Patience& patience);
  template <class Over>
  Polled poll_until(const Over& is_over, int rounds);
  MessageStatus end_call(const TransferPtr& transfer, const Posting& message,
                         const Patience& patience);
  void wait_while_held(Hold& hold, const MessageTransfer& transfer,
                       std::chrono::steady_clock::time_point until);
  bool has_ended_for_caller(MessageTransfer& transfer);
  std::string leave(std::vector<TransferPtr>& given_up);
  void abort_with(const Group& group, const ContextAbort& why) noexcept;
  void note_end(int rank);

  const std::shared_ptr<SharedSegment> segment_;
  const int rank_;
  const int owner_;
  std::vector<Member> members_;
  const Doorbell own_;
  std::mutex mutex_;
  Traffic traffic_;
  Attendance attendance_;
  bool closed_ = false;
  std::vector<std::function<void()>> on_close_;
  std::optional<ServiceThread> service_;  ///< Last: it uses all the rest.
};

/// Ranks that are threads of this process.
std::vector<std::shared_ptr<Endpoint>> local_endpoints(int ranks);

}  // namespace quadriga::message
