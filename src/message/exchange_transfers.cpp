// SPDX-License-Identifier: BSD-3-Clause
// src/message/exchange_transfers.cpp: an exchange's start and end, all its transfers at once.
#include "message/exchange_transfers.h"

#include <quadriga/error.h>

#include <algorithm>
#include <utility>

#include "message/stream_order.h"

namespace quadriga::message {
namespace {

bool is_open(const TransferPtr& transfer) {
  return !transfer->done.load(std::memory_order_acquire);
}
bool has_failed(const TransferPtr& transfer) {
  return !is_open(transfer) && transfer->error != nullptr;
}

}  // namespace

ExchangeTransfers::ExchangeTransfers(std::shared_ptr<Endpoint> endpoint,
                                     const std::vector<Posting>& receives,
                                     const std::vector<Posting>& sends, std::shared_ptr<void> keep,
                                     std::vector<std::optional<std::uintptr_t>> streams)
    : endpoint_(std::move(endpoint)),
      keep_(std::move(keep)),
      receives_(receives.size()),
      streams_(std::move(streams)) {
  for (const Posting& each : receives) all_.push_back(transfer_of(each, false));
  for (const Posting& each : sends) all_.push_back(transfer_of(each, true));
  for (const TransferPtr& each : all_) each->done = true;
}

void ExchangeTransfers::start() const {
  const auto open = std::ranges::find_if(all_, is_open);
  if (open != all_.end())
    fail(Errc::invalid_argument, "start: " + (*open)->text() + " hasn't ended yet");
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (streams_[i]) {
      const MessageBuffer& place = all_[i]->place;
      all_[i]->order =
          std::make_shared<StreamOrder>(place.port, place.device, *streams_[i], StreamSide::before);
    }
  endpoint_->start_all(all_, keep_);
}

void ExchangeTransfers::wait(const Patience& patience) const {
  const auto is_over = [&] {
    return std::ranges::none_of(all_, is_open) || std::ranges::any_of(all_, has_failed);
  };
  const auto open = std::ranges::find_if(all_, is_open);
  if (open != all_.end()) endpoint_->wait_for(is_over, posting_of(**open), patience);
  end();
}

// If one has failed, it is over for all of them.
void ExchangeTransfers::end() const {
  const auto failed = std::ranges::find_if(all_, has_failed);
  if (failed == all_.end()) return;
  const std::exception_ptr error = (*failed)->error;
  cancel();
  std::rethrow_exception(error);
}

bool ExchangeTransfers::test() const {
  bool over = true;
  for (const TransferPtr& each : all_) {
    try {
      over = endpoint_->test(each) && over;
    } catch (...) {
      if (is_open(each)) throw;
    }
  }
  end();
  return over;
}

bool ExchangeTransfers::cancel() const {
  bool any = false;
  for (const TransferPtr& each : all_) {
    if (!is_open(each)) continue;
    any = true;
    endpoint_->withdraw(each);
  }
  return any;
}

std::vector<MessageStatus> ExchangeTransfers::received() const {
  std::vector<MessageStatus> found;
  for (std::size_t i = 0; i < receives_; ++i)
    found.push_back(is_open(all_[i]) ? MessageStatus{} : all_[i]->status);
  return found;
}

}  // namespace quadriga::message
