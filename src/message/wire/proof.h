// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/proof.h: shows that one knows a token of 128 bits without saying it.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace quadriga::message {

using Token = std::array<std::byte, 16>;
using Proof = std::array<std::byte, 16>;
using Nonce = std::array<std::byte, 16>;

/// SipHash-2-4 with 128 bits of output: a keyed function that nobody without the key can predict.
/// Source:  Aumasson, Bernstein, SipHash: a fast short-input PRF, INDOCRYPT 2012; the output of 128
///          bits is that of the authors' reference program.
Proof sip_hash(const Token& key, std::span<const std::byte> message) noexcept;

/// Compares in a time that doesn't depend on where they differ.
bool same_proof(const Proof& a, const Proof& b) noexcept;

/// From the system's generator. Errors: unavailable.
Nonce random_nonce();

/// Reads 32 hexadecimal digits. Errors: invalid_argument; the text isn't repeated.
Token parse_token(std::string_view text);

}  // namespace quadriga::message
