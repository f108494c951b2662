// SPDX-License-Identifier: BSD-3-Clause
// src/message/matching.h: which message a receive gets: pure, by source and tag, in order.
#pragma once

#include <quadriga/message_types.h>

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace quadriga::message {

/// What a message is addressed by, or what a receive asks for; the latter may have wildcards.
struct Address {
  std::uint64_t context = 0;  ///< Communicators don't mix.
  int source = any_source;    ///< A rank of the world.
  int tag = any_tag;

  bool accepts(const Address& message) const noexcept {
    return context == message.context && (source == any_source || source == message.source) &&
           (tag == any_tag || tag == message.tag);
  }
  /// Whether some message is accepted by both.
  bool overlaps(const Address& other) const noexcept {
    const auto meet = [](int one, int two, int any) {
      return one == any || two == any || one == two;
    };
    return context == other.context && meet(source, other.source, any_source) &&
           meet(tag, other.tag, any_tag);
  }
};

/// Receives that wait for messages and messages that wait for receives, each in their order.
///
/// A message goes to the oldest receive that accepts it, a receive takes the oldest message that it
/// accepts; so messages between two ranks never overtake each other. No receive waits beside a
/// message that it accepts.
template <class Receive, class Posting>
class Matching {
 public:
  /// The oldest waiting receive for a message that arrives, which is no longer waiting.
  std::optional<Receive> take_receive(const Address& message) {
    return take(receives_, [&](const Address& wanted) { return wanted.accepts(message); });
  }
  std::optional<Posting> take_message(const Address& wanted) {
    return take(messages_, [&](const Address& message) { return wanted.accepts(message); });
  }
  /// Nothing that waits accepted it, or would be accepted by it.
  void add_receive(const Address& wanted, Receive receive) {
    receives_.emplace_back(wanted, std::move(receive));
  }
  void add_message(const Address& message, Posting content) {
    messages_.emplace_back(message, std::move(content));
  }
  /// The oldest message that would be taken once each of `before`, receives that come first in this
  /// order, has taken its own; and its address. It stays. `is_there(message)` is false for one that
  /// nobody gets any more.
  template <class IsThere>
  const std::pair<Address, Posting>* find_message(const Address& wanted,
                                                  std::span<const Address> before,
                                                  IsThere&& is_there) const {
    std::vector<bool> served(before.size(), false);
    const auto goes_before = [&](const Address& message) {
      for (std::size_t i = 0; i < before.size(); ++i)
        if (!served[i] && before[i].accepts(message)) return served[i] = true, true;
      return false;
    };
    for (const auto& each : messages_) {
      if (!is_there(each.second) || goes_before(each.first)) continue;
      if (wanted.accepts(each.first)) return &each;
    }
    return nullptr;
  }
  /// Whether a receive waits that accepts this message.
  bool accepts(const Address& message) const noexcept {
    for (const auto& each : receives_)
      if (each.first.accepts(message)) return true;
    return false;
  }
  /// Whether a receive that waits might accept a message from there.
  bool is_awaited(int source) const noexcept {
    for (const auto& [wanted, _] : receives_)
      if (wanted.source == any_source || wanted.source == source) return true;
    return false;
  }
  /// Takes out all receives of which `which(address, receive)` holds, in order.
  template <class Which>
  std::list<Receive> remove_receives(Which&& which) {
    std::list<Receive> removed;
    for (auto at = receives_.begin(); at != receives_.end();) {
      const bool goes = which(at->first, at->second);
      if (goes) removed.push_back(std::move(at->second));
      at = goes ? receives_.erase(at) : std::next(at);
    }
    return removed;
  }
  /// Drops messages of which `which(address, message)` holds.
  template <class Which>
  void remove_messages(Which&& which) {
    messages_.remove_if([&](const auto& each) { return which(each.first, each.second); });
  }
  template <class Visit>
  void visit_receives(Visit&& visit) const {
    for (const auto& each : receives_) visit(each.second);
  }
  bool has_receives() const noexcept { return !receives_.empty(); }
  std::size_t messages() const noexcept { return messages_.size(); }

 private:
  template <class Content, class Accepts>
  static std::optional<Content> take(std::list<std::pair<Address, Content>>& from,
                                     Accepts&& accepts) {
    for (auto at = from.begin(); at != from.end(); ++at) {
      if (!accepts(at->first)) continue;
      std::optional<Content> taken(std::move(at->second));
      from.erase(at);
      return taken;
    }
    return std::nullopt;
  }
  std::list<std::pair<Address, Receive>> receives_;
  std::list<std::pair<Address, Posting>> messages_;
};

}  // namespace quadriga::message
