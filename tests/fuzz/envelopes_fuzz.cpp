// SPDX-License-Identifier: BSD-3-Clause
// tests/fuzz/envelopes_fuzz.cpp: libFuzzer writes the envelopes that an MPI program's rank gets:
// length, token, sender and slot say what they like of payloads that are there.
//
// Built on request, by Clang, where an MPI is: cmake -DCMAKE_CXX_COMPILER=clang++-14 ..., target
// fuzz_envelopes.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/input.h"
#include "message/endpoint.h"
#include "message/start.h"
#include "mpi/mpi_envelope.h"

namespace quadriga::mpi {
namespace {

using message::ElementType;
using message::Layout;

constexpr int ranks = 3;

// Ranks of one process: the first one receives.
struct Ranks {
  Ranks() {
    for (const auto& each : message::local_endpoints(ranks))
      all.push_back(std::make_unique<message::CommunicatorCore>(each));
    fuzzed.core = std::make_unique<message::CommunicatorCore>(*all.front());
    for (std::size_t i = 0; i < fuzzed.mark.size(); ++i)
      fuzzed.mark[i] = static_cast<unsigned char>(0xa0 + i);
    world = &fuzzed;
  }
  World fuzzed{Switches{}};
  std::vector<std::unique_ptr<message::CommunicatorCore>> all;
};

// Of up to 64 KiB: more than a slot holds.
Layout draw_layout(message::Input& input) {
  const std::int64_t count = 1 + input.take<std::uint8_t>() % 64;
  const std::int64_t length = input.take<std::uint16_t>() % 1024;
  return Layout::vector(count, length, length + input.take<std::uint8_t>() % 9, ElementType::bytes);
}

// A payload that a rank offers, and what it is sent from.
struct Offered {
  Offered(message::CommunicatorCore& from, const Layout& layout, int with)
      : memory(static_cast<std::size_t>(layout.bounds().second), std::byte{7}),
        tag(with),
        transfer(from.start_send({layout, memory.data()}, 0, tag)) {}
  std::vector<std::byte> memory;
  const int tag;
  const message::TransferPtr transfer;
};

// What is there must fit or be refused, whatever the envelope promised.
void receive(message::Input& input, const MpiEnvelope& envelope, std::size_t offered) {
  const Layout layout = draw_layout(input);
  // No byte more than it reaches.
  std::vector<std::byte> memory(static_cast<std::size_t>(layout.bounds().second));
  const auto type = std::make_shared<const Datatype>(layout, 1, false);
  std::int64_t bytes = 0;
  const int code = fetch(envelope, {memory.data(), 1, type}, bytes);
  const bool fits = offered <= static_cast<std::size_t>(layout.bytes());
  if ((code == MPI_SUCCESS) != fits) std::abort();
  if (code == MPI_SUCCESS && bytes != static_cast<std::int64_t>(offered)) std::abort();
}

void run(message::Input input) {
  static Ranks here;
  static int next = 0;
  next = (next + 1) & 0x7fffffff;
  const int sender = 1 + input.take<std::uint8_t>() % (ranks - 1);
  Offered payload(*here.all[static_cast<std::size_t>(sender)], draw_layout(input), next);
  const std::size_t offered = payload.transfer->place.bytes();
  MpiEnvelope envelope{};
  input.fill(std::as_writable_bytes(std::span(&envelope, 1)));
  // What nobody guesses, and, mostly, that it is of a payload which is there: others wait for one.
  const auto choice = input.take<std::uint8_t>();
  if (choice % 8 != 0) std::memcpy(envelope.mark, here.fuzzed.mark.data(), sizeof envelope.mark);
  if (choice % 16 > 1) std::memcpy(envelope.token, &next, sizeof next);
  if (choice % 32 > 2) std::memcpy(envelope.sender, &sender, sizeof sender);
  const bool is_there = envelope.tag() == next && envelope.peer() == sender;
  const bool is_valid = envelope.is_valid();
  if (is_valid && (envelope.bytes() < 0 || envelope.peer() < 0 || envelope.peer() >= ranks ||
                   envelope.tag() < 0))
    std::abort();
  if (is_valid && is_there) receive(input, envelope, offered);
  message::Endpoint& endpoint = here.all[static_cast<std::size_t>(sender)]->endpoint();
  if (is_valid && is_there)
    endpoint.wait(payload.transfer, {5, {}});
  else
    endpoint.withdraw(payload.transfer);
}

}  // namespace
}  // namespace quadriga::mpi

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  quadriga::mpi::run(quadriga::message::Input(std::as_bytes(std::span(data, size))));
  return 0;
}
