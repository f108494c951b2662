// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/handshake.cpp: proofs of the token, bound to both ranks' nonces.
#include "message/wire/handshake.h"

namespace quadriga::message {

Proof proof_of(const Token& token, const Hello& hello, const Nonce& nonce, bool by_first) {
  const struct {
    Hello hello;
    Nonce nonce{};
    std::uint32_t first_rank = 0;
  } statement{hello, nonce, by_first ? 1U : 0U};
  return sip_hash(token, bytes_of(statement));
}

}  // namespace quadriga::message
