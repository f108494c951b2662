// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/proof.cpp: SipHash, nonces, and tokens as text.
#include "message/wire/proof.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/random.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace quadriga::message {
namespace {

static_assert(std::endian::native == std::endian::little);

class SipState {
 public:
  explicit SipState(const Token& key) noexcept {
    std::uint64_t low = 0, high = 0;
    std::memcpy(&low, key.data(), 8);
    std::memcpy(&high, key.data() + 8, 8);
    a_ = low ^ 0x736f6d6570736575u;
    b_ = high ^ 0x646f72616e646f6du ^ 0xee;  // 0xee: 128 bits come out.
    c_ = low ^ 0x6c7967656e657261u;
    d_ = high ^ 0x7465646279746573u;
  }
  void absorb(std::uint64_t word) noexcept {
    d_ ^= word;
    rounds(2);
    a_ ^= word;
  }
  Proof finish() noexcept {
    Proof proof;
    c_ ^= 0xee;
    for (std::size_t half = 0; half < 2; ++half) {
      rounds(4);
      const std::uint64_t word = a_ ^ b_ ^ c_ ^ d_;
      std::memcpy(proof.data() + 8 * half, &word, 8);
      b_ ^= 0xdd;
    }
    return proof;
  }

 private:
  void rounds(int count) noexcept {
    for (int i = 0; i < count; ++i) {
      a_ += b_;
      c_ += d_;
      b_ = std::rotl(b_, 13) ^ a_;
      d_ = std::rotl(d_, 16) ^ c_;
      a_ = std::rotl(a_, 32);
      c_ += b_;
      a_ += d_;
      b_ = std::rotl(b_, 17) ^ c_;
      d_ = std::rotl(d_, 21) ^ a_;
      c_ = std::rotl(c_, 32);
    }
  }
  std::uint64_t a_, b_, c_, d_;
};

int digit_of(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

Proof sip_hash(const Token& key, std::span<const std::byte> message) noexcept {
  SipState state(key);
  std::size_t at = 0;
  std::uint64_t word = 0;
  for (; at + 8 <= message.size(); at += 8) {
    std::memcpy(&word, message.data() + at, 8);
    state.absorb(word);
  }
  word = 0;
  if (at < message.size()) std::memcpy(&word, message.data() + at, message.size() - at);
  state.absorb(word | static_cast<std::uint64_t>(message.size()) << 56);
  return state.finish();
}

bool same_proof(const Proof& a, const Proof& b) noexcept {
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

Nonce random_nonce() {
  Nonce nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    fail(Errc::unavailable, "the system gives no random numbers");
  return nonce;
}

Token parse_token(std::string_view text) {
  Token token;
  require(
      text.size() == 2 * token.size(),
      fmt::format("join: a token of {} characters; expected 32 hexadecimal digits", text.size()));
  for (std::size_t i = 0; i < token.size(); ++i) {
    const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
    require(high >= 0 && low >= 0,
            fmt::format("join: a token has '{}' at {}; expected 32 hexadecimal digits",
                        text.substr(2 * i, 2), 2 * i));
    token[i] = static_cast<std::byte>(high * 16 + low);
  }
  return token;
}

}  // namespace quadriga::message
