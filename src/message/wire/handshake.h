// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/handshake.h: what two ranks say when one joins the other; the token is proved,
// never sent.
//
//   other rank               first rank
//   Hello                ->
//                        <-  Challenge, which proves that it knows the token
//   Proof, its process   ->
//     and its event
//                        <-  the shared memory, then process and event of all ranks in order;
//                            a packet without a descriptor instead: why it is turned away
//   a byte               ->
//                        <-  a byte of 2, once everybody has everything
#pragma once

#include <cstring>
#include <optional>
#include <span>

#include "message/wire/local_socket.h"
#include "message/wire/proof.h"

namespace quadriga::message {

struct Hello {
  /// Counts changes of anything that ranks send each other.
  static constexpr std::uint32_t protocol = 3;
  std::uint32_t version = protocol;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  Nonce nonce{};
};
struct Challenge {
  Nonce nonce{};
  Proof proof{};
};

/// Of what both have said, by which of them.
Proof proof_of(const Token& token, const Hello& hello, const Nonce& nonce, bool by_first);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// What a packet says, of which nothing but its size is checked; nothing if that is another.
template <class T>
std::optional<T> said(const std::optional<Packet>& packet) {
  if (!packet || packet->bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, packet->bytes.data(), sizeof value);
  return value;
}

}  // namespace quadriga::message
