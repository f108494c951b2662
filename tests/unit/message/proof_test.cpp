// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/proof_test.cpp: SipHash against its authors' vectors; tokens as text.
#include "message/wire/proof.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <string>
#include <vector>

namespace quadriga::message {
namespace {

std::string text_of(const Proof& proof) {
  std::string text;
  for (const std::byte each : proof) text += fmt::format("{:02x}", static_cast<unsigned>(each));
  return text;
}

TEST(Proof, IsSipHashOf128Bits) {
  const Token key = parse_token("000102030405060708090a0b0c0d0e0f");
  const std::vector<std::string> expected{"a3817f04ba25a8e66df67214c7550293",
                                          "da87c1d86b99af44347659119b22fc45",
                                          "8177228da4a45dc7fca38bdef60affe4"};
  std::vector<std::byte> message;
  for (const std::string& each : expected) {
    EXPECT_EQ(text_of(sip_hash(key, message)), each);
    message.push_back(static_cast<std::byte>(message.size()));
  }
}

TEST(Proof, DependsOnEveryBit) {
  Token key = parse_token("00000000000000000000000000000000");
  const std::vector<std::byte> message(45);
  const Proof before = sip_hash(key, message);
  EXPECT_TRUE(same_proof(before, sip_hash(key, message)));
  key[15] = std::byte{1};
  EXPECT_FALSE(same_proof(before, sip_hash(key, message)));
}

TEST(Proof, TokensHave32Digits) {
  EXPECT_THROW(parse_token("00"), Error);
  EXPECT_THROW(parse_token("g00102030405060708090a0b0c0d0e0f"), Error);
  EXPECT_NE(random_nonce(), random_nonce());
}

}  // namespace
}  // namespace quadriga::message
