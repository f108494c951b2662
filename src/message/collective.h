// SPDX-License-Identifier: BSD-3-Clause
// src/message/collective.h: one collective of a communicator: its agreement, its steps, its end.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "message/communicator.h"
#include "message/device_local.h"
#include "message/nccl/choice.h"
#include "message/schedules/rank_offer.h"
#include "message/schedules/schedule.h"
#include "message/step_runner.h"

namespace quadriga::message {

/// What one rank says of a collective; all ranks must say the same.
struct CollectiveTerms {
  CallKind operation = CallKind::none;
  int root = -1;
  int reduction = -1;
  ElementSignature elements{};  ///< Of one rank's part.
  std::string fault{};          ///< Why this rank can't take part.
  /// What else all must agree on, and in words.
  std::uint64_t detail = 0;
  std::string detail_text{};
  RankOffer offer{};  ///< May differ, as the next: no part of what must be the same.
  NcclOffer nccl{};
  /// Few bytes of the host, which all ranks get with the agreement if all tell theirs.
  std::optional<std::span<const std::byte>> told{};
  std::string text() const;
};

/// What each rank tells in an agreement, all of whose rounds are alike.
struct Announcement {
  std::uint64_t least = 0, greatest = 0;  ///< Fingerprints that it knows of.
  RankOffer offer{};
  NcclOffer nccl{};
  std::uint64_t tells = 0;  ///< Not 0: all that it knows of tell their data.
  std::array<std::byte, 256> data{};
};

/// What reductions combine, and where the steps' own memory is: where input and output are.
struct Reducing {
  Home home{};
  ReduceOperation operation = ReduceOperation::sum;
  ElementSignature elements{};
};

class Collective {
 public:
  /// Schedules have fewer.
  static constexpr int lanes = 1024;
  static constexpr int agreement_lane = lanes - 1;
  /// Whom each rank tells at once: a message more costs less than a round more.
  static constexpr int told_at_once = 7;
  static constexpr std::size_t most_told = sizeof Announcement::data;

  Collective(CommunicatorCore& communicator, CallKind operation, const Patience& patience);

  /// Agrees on the terms, then takes the steps. What ends it early ends it on all ranks.
  /// Errors: invalid_argument on all ranks where they disagree, naming who said what.
  void run(const CollectiveTerms& terms, const std::function<void()>& steps);

  // Steps. Ranks are the communicator's.
  int rank() const noexcept { return communicator_.rank(); }
  int size() const noexcept { return communicator_.size(); }
  /// This rank's steps, planned by what all ranks offered in the last agreement: of one plan on
  /// all of them.
  std::shared_ptr<const RankSteps> planned(const CollectiveShape& shape,
                                           const TreeOptions& options) const;
  /// Whether the last agreement had all ranks' bytes; then of each of them.
  bool has_told() const noexcept { return has_told_; }
  const std::byte* told(int rank) const noexcept;
  /// No steps were needed.
  void note_told() const;
  /// What all ranks can do with NCCL, by the last agreement.
  const NcclOffer& nccl_offer() const noexcept { return nccl_; }
  /// NCCL takes the place of steps, and has ended.
  void note_nccl(const std::string& version, double seconds) const;
  void note_moved() const { note(&CollectiveTimes::moved); }
  Endpoint& endpoint() const noexcept { return communicator_.endpoint(); }
  /// Waits for what a device does otherwise than by messages. Errors: Endpoint::await_work()'s.
  void await_work(const std::function<bool()>& is_over, const char* late) const;
  void send(int to, const void* data, std::size_t bytes);
  void receive(int from, void* data, std::size_t bytes);
  void send_place(int to, const MessageBuffer& place);
  void receive_place(int from, const MessageBuffer& place);
  TransferPtr start_send(int to, const void* data, std::size_t bytes);
  TransferPtr start_receive(int from, void* data, std::size_t bytes);
  void wait(const std::vector<TransferPtr>& transfers);
  void withdraw(const std::vector<TransferPtr>& transfers);
  /// A few bytes for each rank and from each: of `from`, so many bytes apart.
  void all_to_all(const void* from, std::size_t from_step, void* into, std::size_t bytes);
  /// Agrees once more within the steps, on what these have found out.
  /// Errors: as run(); the communicator stays usable.
  void agree_again(const CollectiveTerms& terms);

  /// Copies elements of this rank, whose layouts may differ; on devices if either is there.
  void copy(const MessageBuffer& from, const MessageBuffer& into);

  using PlaceOf = std::function<MessageBuffer(const StepPlace& place, std::int64_t bytes)>;
  /// Takes a rank's steps. `places` says where input and output are; the rest is made here.
  void take(const RankSteps& steps, const PlaceOf& places, const Reducing& reducing = {});

 private:
  void agree(const CollectiveTerms& terms);
  void tell(const Announcement& mine, int distance, std::span<Announcement> others);
  [[noreturn]] void tell_differences(const CollectiveTerms& terms);
  Posting message(int peer, const MessageBuffer& place, int lane = agreement_lane) const;
  Patience left() const;
  void note(double CollectiveTimes::*what) const;
  TransferPtr start_move(const MessageBuffer& into, std::shared_ptr<DeviceMove> move);

  CommunicatorCore& communicator_;
  const CallKind operation_;
  const Patience& patience_;
  const std::chrono::steady_clock::time_point begin_;
  const int tag_;  ///< Of its first lane.
  bool agreed_ = false;
  RankOffer offer_;  ///< Of all ranks together, in the last agreement; so is the next.
  NcclOffer nccl_;
  bool has_told_ = false;
  std::array<std::byte, most_told> own_;
  std::array<Announcement, told_at_once> heard_;  ///< From the rank before, from that before it.
};

/// Bytes as they are.
MessageBuffer bytes_place(const void* data, std::size_t bytes);
/// Whether they share memory.
bool overlap(const MessageBuffer& a, const MessageBuffer& b) noexcept;

}  // namespace quadriga::message
