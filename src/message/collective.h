// SPDX-License-Identifier: BSD-3-Clause
// src/message/collective.h: one collective of a communicator: its agreement, its steps, its end.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "message/communicator.h"

namespace quadriga::message {

/// Bytes side by side that a place's elements travel as: the place's own, or a packed copy.
class PackedPlace {
 public:
  /// Packs what isn't side by side, if it is read, and what lies where `apart_from` is written.
  PackedPlace(const MessageBuffer& place, bool is_read, const MessageBuffer* apart_from = nullptr);
  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return place_.bytes(); }
  /// Unpacks what was written, if there is a copy.
  void write_back() const;

 private:
  const MessageBuffer place_;
  std::vector<std::byte> copy_;
  std::byte* data_;
};

/// What one rank says of a collective; all ranks must say the same.
struct CollectiveTerms {
  CallKind operation = CallKind::none;
  int root = -1;
  int reduction = -1;
  ElementSignature elements{};  ///< Of one rank's part.
  std::string fault{};          ///< Why this rank can't take part.
  std::string text() const;
};

class Collective {
 public:
  Collective(CommunicatorCore& communicator, CallKind operation, const Patience& patience);

  /// Agrees on the terms, then takes the steps. What ends it early ends it on all ranks.
  /// Errors: invalid_argument on all ranks where they disagree, naming who said what.
  void run(const CollectiveTerms& terms, const std::function<void()>& steps);

  // Steps. Ranks are the communicator's.
  int rank() const noexcept { return communicator_.rank(); }
  int size() const noexcept { return communicator_.size(); }
  void send(int to, const void* data, std::size_t bytes);
  void receive(int from, void* data, std::size_t bytes);
  void send_place(int to, const MessageBuffer& place);
  void receive_place(int from, const MessageBuffer& place);
  TransferPtr start_send(int to, const void* data, std::size_t bytes);
  TransferPtr start_receive(int from, void* data, std::size_t bytes);
  /// Sends one and receives another at once.
  void exchange(int to, const void* sent, int from, void* received, std::size_t bytes);
  void wait(const std::vector<TransferPtr>& transfers);
  /// Down a binomial tree.
  void broadcast(const MessageBuffer& place, int root);
  /// Up a binomial tree; `data` is each rank's part, and the result on the root.
  void reduce(std::byte* data, std::size_t bytes, std::size_t elements, const Combine& combine,
              int root);

 private:
  void agree(const CollectiveTerms& terms);
  [[noreturn]] void tell_differences(const CollectiveTerms& terms);
  Posting message(int peer, const MessageBuffer& place) const;
  Patience left() const;

  CommunicatorCore& communicator_;
  const CallKind operation_;
  const Patience& patience_;
  const std::chrono::steady_clock::time_point begin_;
  const int tag_;
};

}  // namespace quadriga::message
