// SPDX-License-Identifier: BSD-3-Clause
// src/message/host_reads.cpp: reading other processes' memory by process_vm_readv.
#include "message/host_reads.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "message/arriving.h"

namespace quadriga::message {
namespace {

// Read at once with the lock held.
constexpr std::size_t read_bytes = std::size_t{1} << 20;
// What isn't unpacked in place passes through a buffer that stays in the cache.
constexpr std::size_t bounce_bytes = std::size_t{256} << 10;

}  // namespace

bool HostReads::advance() {
  bool moved = false;
  // The oldest first; the others have their turn at the next look.
  std::size_t left = read_bytes;
  for (std::size_t i = 0; i < all_.size() && left > 0;) {
    const TransferPtr transfer = all_[i];
    try {
      moved = read_on(*transfer, left) || moved;
    } catch (const std::exception&) {
      fail_receive(links_, *transfer, std::current_exception(), ends_);
    }
    const bool ended = transfer->done.load(std::memory_order_relaxed);
    const bool is_read = !ended && transfer->moved == transfer->expected;
    if (!ended && !is_read && sender_of(links_, *transfer).can_read) {
      ++i;
      continue;
    }
    remove(all_, i);
    moved = true;
    if (is_read)
      moves_.add(transfer);
    else if (!ended)
      pieces_.want(transfer);
  }
  return moved;
}

// Whether anything moved. The host's memory is filled in place, or by way of a buffer; a device's
// by way of the blocks of its writer.
bool HostReads::read_on(MessageTransfer& transfer, std::size_t& most) {
  PeerLink& link = sender_of(links_, transfer);
  if (link.claims.state(transfer.claim) != ClaimState::claimed) {
    end_withdrawn(transfer, ends_);
    return true;
  }
  const bool on_device = transfer.place.on_device();
  const std::size_t left = transfer.expected - transfer.moved;
  std::span<std::byte> room;
  std::byte* const flat = on_device ? nullptr : transfer.place.flat();
  if (on_device) {
    room = writer_of(transfer).room();
    if (room.empty()) return false;
  } else if (flat != nullptr) {
    room = {flat + transfer.moved, read_bytes};
  } else {
    bounce_.resize(bounce_bytes);
    room = bounce_;
  }
  const std::size_t bytes = std::min({left, most, room.size()});
  // A sender that sleeps wakes while the last of it is read.
  if (transfer.moved > 0 && bytes == left) link.bell.ring();
  const iovec here{room.data(), bytes};
  const iovec there{reinterpret_cast<void*>(transfer.address + transfer.moved), bytes};
  const ssize_t got = process_vm_readv(link.pid, &here, 1, &there, 1, 0);
  if (got <= 0) return give_way(transfer, link, got < 0 ? errno : 0);
  const auto count = static_cast<std::size_t>(got);
  most -= count;
  if (on_device)
    transfer.writer->wrote(count);
  else if (flat == nullptr)
    unpack_at(transfer.place, transfer.moved, {bounce_.data(), count});
  transfer.moved += count;
  return transfer.moved < transfer.expected || conclude(transfer, link);
}

// Nothing could be read.
bool HostReads::give_way(MessageTransfer& transfer, PeerLink& link, int error) {
  // A process that has just ended is noticed by its descriptor.
  if (error == ESRCH && link.process >= 0) return false;
  // One that gave up may have freed the memory: that says nothing of the next message.
  if (link.claims.state(transfer.claim) == ClaimState::claimed)
    link.can_read = false;
  else
    end_withdrawn(transfer, ends_);
  return true;
}

// All was read.
bool HostReads::conclude(MessageTransfer& transfer, PeerLink& link) {
  // The process number may be another's, if this one ended meanwhile: then nothing was received.
  if (!process_lives(link.process)) {
    transfer.moved = 0;
    transfer.stop_moving();
    return false;
  }
  if (!link.claims.change(transfer.claim, ClaimState::claimed, ClaimState::done)) {
    end_withdrawn(transfer, ends_);
    return true;
  }
  link.bell.ring();
  if (!transfer.place.on_device()) ends_.end(transfer);
  return true;
}

bool HostReads::cancel(const TransferPtr& transfer) {
  if (std::erase(all_, transfer) == 0) return false;
  // The sender's part is over: nobody else receives the message.
  PeerLink& link = sender_of(links_, *transfer);
  link.claims.change(transfer->claim, ClaimState::claimed, ClaimState::done);
  link.bell.ring();
  return true;
}

void HostReads::drop(int peer,
                     const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  std::erase_if(all_, [&](const TransferPtr& each) {
    if (each->sender != peer) return false;
    ends_.end(*each, error_of(*each));
    return true;
  });
}

}  // namespace quadriga::message
