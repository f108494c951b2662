// SPDX-License-Identifier: BSD-3-Clause
// src/message/moving_receives.cpp: looking after what devices copy for receives.
#include "message/moving_receives.h"

#include <algorithm>

#include "message/arriving.h"
#include "message/stream_order.h"

namespace quadriga::message {

bool MovingReceives::advance() {
  bool moved = false;
  for (std::size_t i = 0; i < all_.size();) {
    const TransferPtr transfer = all_[i];
    try {
      moved = move_on(*transfer) || moved;
    } catch (const std::exception&) {
      fail_receive(links_, *transfer, std::current_exception(), ends_);
    }
    if (!transfer->done.load(std::memory_order_relaxed)) {
      ++i;
      continue;
    }
    remove(all_, i);
    moved = true;
  }
  return moved;
}

// Whether anything moved; ends the transfer once all has.
bool MovingReceives::move_on(MessageTransfer& transfer) {
  if (transfer.writer) {
    if (!transfer.writer->has_ended()) return false;
    ends_.end(transfer);
    return true;
  }
  const bool is_message = transfer.claim.number != 0;
  const ClaimState state =
      is_message ? sender_of(links_, transfer).claims.state(transfer.claim) : ClaimState::held;
  if (state != ClaimState::claimed && state != ClaimState::held) {
    end_withdrawn(transfer, ends_);
    return true;
  }
  if (transfer.copier) {
    const bool moved = transfer.copier->advance();
    if (!transfer.copier->has_ended()) return moved;
  } else {
    if (!unpack_some(transfer)) return false;
    if (transfer.moved < transfer.expected) return true;
  }
  transfer.stop_moving();
  if (end_claim(links_, transfer))
    ends_.end(transfer);
  else
    end_withdrawn(transfer, ends_);
  return true;
}

// What a device has brought to the host.
bool MovingReceives::unpack_some(MessageTransfer& transfer) {
  const std::span<const std::byte> some = transfer.reader->at(transfer.moved);
  unpack_at(transfer.place, transfer.moved, some);
  transfer.moved += some.size();
  return !some.empty();
}

// From here on the sender can't take the message back.
void MovingReceives::lead(MessageTransfer& transfer) {
  const auto lane = transfer.copier ? DeviceMove::own_lane : DeviceWriter::own_lane;
  const Claims& claims = sender_of(links_, transfer).claims;
  if (transfer.copier && claims.state(transfer.claim) != ClaimState::held &&
      !claims.change(transfer.claim, ClaimState::claimed, ClaimState::held))
    return;
  transfer.is_led = transfer.order->lead(lane);
}

bool MovingReceives::cancel(const TransferPtr& transfer) {
  if (std::erase(all_, transfer) == 0) return false;
  transfer->stop_moving();
  end_claim(links_, *transfer);
  return true;
}

void MovingReceives::drop(
    int peer, const std::function<std::exception_ptr(const MessageTransfer&)>& error_of) {
  std::erase_if(all_, [&](const TransferPtr& each) {
    if (each->sender != peer || each->writer) return false;
    ends_.end(*each, error_of(*each));
    return true;
  });
}

bool MovingReceives::has_led() const noexcept {
  return std::ranges::any_of(all_, [](const TransferPtr& each) { return each->is_led; });
}

}  // namespace quadriga::message
