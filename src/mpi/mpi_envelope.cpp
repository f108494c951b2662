// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/mpi_envelope.cpp: offering payloads, and fetching them.
#include "mpi/mpi_envelope.h"

#include <quadriga/error.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "mpi/device_buffers.h"

namespace quadriga::mpi {
namespace {

template <class T>
T value_at(const unsigned char* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// A sender that waits longer than a copy would have taken loses at most as much again by copying
// then, whenever its receiver comes. The rate is a low one for one core; the least is what a
// process needs to be woken.
constexpr double copy_bytes_per_second = 1e9;
constexpr std::chrono::microseconds least_patience{200};

}  // namespace

std::int64_t MpiEnvelope::bytes() const noexcept { return value_at<std::int64_t>(length); }
int MpiEnvelope::tag() const noexcept { return value_at<std::int32_t>(token); }
int MpiEnvelope::peer() const noexcept { return value_at<std::int32_t>(sender); }
int MpiEnvelope::probed_slot() const noexcept { return value_at<std::int32_t>(slot); }
bool MpiEnvelope::is_valid() const noexcept {
  return std::memcmp(mark, world->mark.data(), sizeof mark) == 0 && bytes() >= 0 && tag() >= 0 &&
         peer() >= 0 && peer() < world->core->size();
}

PayloadOffer::PayloadOffer(message::MessageBuffer place, int peer, int slot)
    : place_(std::move(place)), peer_(peer), slot_(slot) {
  const std::int64_t bytes = place_.layout.bytes();
  const auto tag = static_cast<std::int32_t>(
      world->next_tag.fetch_add(1, std::memory_order_relaxed) & 0x7fffffff);
  const std::int32_t own = world->core->rank(), probed = slot;
  std::memcpy(envelope_.mark, world->mark.data(), sizeof envelope_.mark);
  std::memcpy(envelope_.length, &bytes, sizeof bytes);
  std::memcpy(envelope_.token, &tag, sizeof tag);
  std::memcpy(envelope_.sender, &own, sizeof own);
  std::memcpy(envelope_.slot, &probed, sizeof probed);
  begin_patience();
  transfer_ = world->core->start_send(place_, peer, tag);
  count(world->counters.sent);
  count(world->counters.sent_bytes, static_cast<std::uint64_t>(bytes));
}

void PayloadOffer::begin_patience() {
  const double seconds = static_cast<double>(place_.layout.bytes()) / copy_bytes_per_second;
  patience_ = Clock::now() + least_patience +
              std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

bool PayloadOffer::waits_for_receive() {
  if (slot_ < 0) return false;
  if (world->probed->is_waiting(slot_, peer_)) return true;
  slot_ = -1;
  begin_patience();
  return false;
}

// False if its receiver fetches it, or has just done so.
bool PayloadOffer::copy_aside() {
  message::Endpoint& endpoint = world->core->endpoint();
  auto copy = std::make_unique_for_overwrite<std::byte[]>(place_.bytes());
  if (!endpoint.cancel(transfer_, message::BegunSends::kept)) return false;
  const auto aside = bytes_at(copy.get(), static_cast<std::int64_t>(place_.bytes()));
  move(place_, aside);
  transfer_ = world->core->start_send(aside, peer_, envelope_.tag(),
                                      std::shared_ptr<std::byte[]>(std::move(copy)));
  kept_ = true;
  count(world->counters.copied);
  return true;
}

bool PayloadOffer::is_over() {
  if (over_) return true;
  if (waits_for_receive()) return false;
  over_ = kept_ || world->core->endpoint().test(transfer_);
  if (!over_ && Clock::now() >= patience_) {
    over_ = copy_aside();
    if (!over_) begin_patience();  // When it is looked at next, if the receiver takes so long.
  }
  // What the receiver's side said is the receiver's, but for a rank that is lost.
  if (over_ && !kept_ && transfer_->done.load(std::memory_order_acquire) && transfer_->error)
    std::rethrow_exception(transfer_->error);
  return over_;
}

void PayloadOffer::finish() {
  while (!over_ && waits_for_receive()) {
    let_progress();
    sched_yield();
  }
  while (!is_over()) {
    const std::chrono::duration<double> left = patience_ - Clock::now();
    message::Patience patience;
    patience.seconds = std::max(left.count(), 0.0);
    try {
      world->core->endpoint().wait_any({&transfer_, 1}, patience);
    } catch (const Error& error) {
      if (error.code() != Errc::deadline) throw;
    }
  }
}

void PayloadOffer::withdraw() noexcept {
  try {
    world->core->endpoint().withdraw(transfer_);
  } catch (...) {
    code_of_exception();
  }
  over_ = true;
}

message::MessageBuffer Destination::place() const { return buffer_at(buffer, type->times(count)); }

int fetch(const MpiEnvelope& envelope, const Destination& into, std::int64_t& bytes) noexcept {
  bytes = 0;
  try {
    const auto place = into.place();
    const bool fits = envelope.bytes() <= place.layout.bytes();
    for (;;) {
      try {
        // What has arrived counts, not what the envelope promised.
        const auto status = world->core->receive(place, envelope.peer(), envelope.tag(), {});
        bytes = static_cast<std::int64_t>(status.bytes);
        count(world->counters.received);
        return MPI_SUCCESS;
      } catch (const Error& error) {
        // The sender has just copied it aside, and offers the copy.
        if (error.code() == Errc::cancelled) continue;
        if (!fits && error.code() == Errc::invalid_argument) return MPI_ERR_TRUNCATE;
        throw;
      }
    }
  } catch (...) {
    return code_of_exception();
  }
}

int code_of_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (const Error& error) {
    std::fprintf(stderr, "quadriga mpi-preload: %s\n", error.what());
    return error.code() == Errc::invalid_argument ? MPI_ERR_TYPE : MPI_ERR_OTHER;
  } catch (...) {
    return MPI_ERR_INTERN;
  }
}

}  // namespace quadriga::mpi
