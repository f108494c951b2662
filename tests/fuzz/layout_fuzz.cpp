// SPDX-License-Identifier: BSD-3-Clause
// tests/fuzz/layout_fuzz.cpp: libFuzzer gives the decoder of layouts any bytes.
//
// Built on request, by Clang: cmake -DCMAKE_CXX_COMPILER=clang++-14 ..., target fuzz_layout.
#include <quadriga/error.h>

#include <algorithm>
#include <cstdlib>

#include "message/layout/code.h"
#include "message/pack/stream.h"

using quadriga::message::Layout;

// A small layout is packed too, from memory that holds just what it reaches.
static void pack(const Layout& layout) {
  constexpr std::int64_t most = 1 << 16;
  const auto [low, high] = layout.bounds();
  if (layout.bytes() > most || high - low > most) return;
  std::vector<std::byte> memory(static_cast<std::size_t>(high - low)),
      packed(static_cast<std::size_t>(layout.bytes()));
  // Offsets may be far from 0: the address that they count from needn't be one of memory.
  const auto origin =
      reinterpret_cast<std::uintptr_t>(memory.data()) - static_cast<std::uintptr_t>(low);
  auto* const data = reinterpret_cast<std::byte*>(origin);
  const quadriga::message::Packer packer(layout, data);
  const std::size_t half = packed.size() / 2;
  packer.pack(half, std::span(packed).subspan(half));
  if (layout.overlapping()) return;
  quadriga::message::Unpacker(layout, data).unpack(0, packed);
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const Layout layout = quadriga::message::decoded(bytes);
    if (!std::ranges::equal(encoded(layout), bytes)) std::abort();
    pack(layout);
  } catch (const quadriga::Error& error) {
    // Whether elements overlap may take too long to find out; all else is the bytes' fault.
    const bool expected = error.code() == quadriga::Errc::invalid_argument ||
                          error.code() == quadriga::Errc::too_large;
    if (!expected) std::abort();
  }
  return 0;
}
