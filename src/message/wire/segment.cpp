// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/segment.cpp: the shared memory's places, its file and its mapping.
#include "message/wire/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <quadriga/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace quadriga::message {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// The first line counts departures.
constexpr std::size_t agreements_at = line_bytes;
constexpr std::size_t proposals_at = agreements_at + most_agreements * sizeof(AgreementWords);
static_assert(proposals_at % line_bytes == 0 && sizeof(ProposalWords) * 2 == line_bytes);

std::size_t head_bytes(const SegmentShape& shape) noexcept {
  return proposals_at +
         most_agreements * static_cast<std::size_t>(shape.ranks) * sizeof(ProposalWords);
}

std::size_t rank_bytes(const SegmentShape& shape) noexcept {
  return sizeof(RankWords) + shape.claims() * sizeof(ClaimWord);
}

constexpr int needed_seals = F_SEAL_SHRINK | F_SEAL_GROW;

std::byte* mapped(std::size_t bytes, int flags, int descriptor) {
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (base == MAP_FAILED)
    fail(Errc::unavailable,
         fmt::format("can't map {} bytes of memory for messages: {}", bytes, std::strerror(errno)));
  return static_cast<std::byte*>(base);
}

}  // namespace

SegmentShape::SegmentShape(int count) noexcept : ranks(count) {
  // A message of 4 KiB fits one slot, of 512 bytes its small part. An odd number of lines spreads
  // slots over a cache's sets.
  const std::uint32_t slots = count <= 16 ? 64 : count <= 64 ? 16 : 8;
  messages = {slots, 8192 + line_bytes, 512 + line_bytes};
  pieces = {8, 32768 + line_bytes};
}

std::size_t SegmentShape::bytes() const noexcept {
  const auto n = static_cast<std::size_t>(ranks);
  return head_bytes(*this) + n * rank_bytes(*this) + n * n * (messages.bytes() + pieces.bytes()) +
         n * n * sizeof(std::atomic<std::uint32_t>);
}

int SharedSegment::create(int ranks) {
  const int file = memfd_create("quadriga-messages", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const std::size_t bytes = SegmentShape(ranks).bytes();
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0 &&
      fcntl(file, F_ADD_SEALS, needed_seals | F_SEAL_SEAL) == 0)
    return file;
  const int reason = errno;
  if (file >= 0) close(file);
  fail(Errc::unavailable,
       fmt::format("can't create {} bytes of shared memory: {}", bytes, std::strerror(reason)));
}

std::shared_ptr<SharedSegment> SharedSegment::map(int ranks, int descriptor) {
  const SegmentShape shape(ranks);
  struct stat found {};
  if (fstat(descriptor, &found) != 0 || static_cast<std::size_t>(found.st_size) != shape.bytes())
    fail(Errc::invalid_argument,
         fmt::format("join: the shared memory has {} bytes; expected {} for {} ranks",
                     found.st_size, shape.bytes(), ranks));
  const int seals = fcntl(descriptor, F_GET_SEALS);
  require(seals >= 0 && (seals & needed_seals) == needed_seals,
          "join: the shared memory isn't sealed against shrinking");
  return std::shared_ptr<SharedSegment>(
      new SharedSegment(shape, mapped(shape.bytes(), MAP_SHARED, descriptor)));
}

std::shared_ptr<SharedSegment> SharedSegment::local(int ranks) {
  const SegmentShape shape(ranks);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  return std::shared_ptr<SharedSegment>(new SharedSegment(shape, mapped(shape.bytes(), flags, -1)));
}

SharedSegment::~SharedSegment() { munmap(base_, shape_.bytes()); }

std::atomic<std::uint32_t>& SharedSegment::departures() const noexcept {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(base_);
}

AgreementWords& SharedSegment::agreement(std::uint32_t place) const noexcept {
  return reinterpret_cast<AgreementWords*>(base_ + agreements_at)[place];
}

ProposalWords& SharedSegment::proposal(std::uint32_t place, int rank) const noexcept {
  const std::size_t first = place * static_cast<std::size_t>(shape_.ranks);
  return reinterpret_cast<ProposalWords*>(base_ +
                                          proposals_at)[first + static_cast<std::size_t>(rank)];
}

RankWords& SharedSegment::words(int rank) const noexcept {
  std::byte* const at =
      base_ + head_bytes(shape_) + static_cast<std::size_t>(rank) * rank_bytes(shape_);
  return *reinterpret_cast<RankWords*>(at);
}

ClaimWord& SharedSegment::claim(int rank, std::uint32_t index) const noexcept {
  std::byte* const first = reinterpret_cast<std::byte*>(&words(rank)) + sizeof(RankWords);
  return reinterpret_cast<ClaimWord*>(first)[index];
}

std::byte* SharedSegment::message_ring(int from, int to) const noexcept {
  const auto n = static_cast<std::size_t>(shape_.ranks);
  const std::size_t pair = static_cast<std::size_t>(from) * n + static_cast<std::size_t>(to);
  return base_ + head_bytes(shape_) + n * rank_bytes(shape_) +
         pair * (shape_.messages.bytes() + shape_.pieces.bytes());
}

std::atomic<std::uint32_t>& SharedSegment::path(int from, int to) const noexcept {
  const std::size_t pair = static_cast<std::size_t>(from) * static_cast<std::size_t>(shape_.ranks) +
                           static_cast<std::size_t>(to);
  std::byte* const end = message_ring(shape_.ranks, 0);
  return reinterpret_cast<std::atomic<std::uint32_t>*>(end)[pair];
}

std::byte* SharedSegment::piece_ring(int from, int to) const noexcept {
  return message_ring(from, to) + shape_.messages.bytes();
}

}  // namespace quadriga::message
