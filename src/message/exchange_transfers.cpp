// SPDX-License-Identifier: BSD-3-Clause
// src/message/exchange_transfers.cpp: an exchange's start and end, all its transfers at once.
#include "message/exchange_transfers.h"

#include <algorithm>
#include <utility>

namespace quadriga::message {

ExchangeTransfers::ExchangeTransfers(std::shared_ptr<Endpoint> endpoint,
                                     const std::vector<Posting>& receives,
                                     const std::vector<Posting>& sends, std::shared_ptr<void> keep)
    : endpoint_(std::move(endpoint)), keep_(std::move(keep)), receives_(receives.size()) {
  for (const Posting& each : receives) all_.push_back(transfer_of(each, false));
  for (const Posting& each : sends) all_.push_back(transfer_of(each, true));
  for (const TransferPtr& each : all_) each->done = true;
}

void ExchangeTransfers::start() const { endpoint_->start_all(all_, keep_); }

void ExchangeTransfers::wait(const Patience& patience) const {
  endpoint_->wait_all(all_, patience);
}

bool ExchangeTransfers::test() const {
  bool over = true, failed = false;
  for (const TransferPtr& each : all_) {
    try {
      over = endpoint_->test(each) && over;
    } catch (...) {
      if (!each->done.load(std::memory_order_acquire)) throw;
      failed = true;
    }
  }
  if (failed) endpoint_->wait_all(all_, {});  // It is over for all of them.
  return over;
}

bool ExchangeTransfers::cancel() const {
  bool any = false;
  for (const TransferPtr& each : all_) {
    if (each->done.load(std::memory_order_acquire)) continue;
    any = true;
    endpoint_->withdraw(each);
  }
  return any;
}

std::vector<MessageStatus> ExchangeTransfers::received() const {
  std::vector<MessageStatus> found;
  for (std::size_t i = 0; i < receives_; ++i)
    found.push_back(all_[i]->done.load(std::memory_order_acquire) ? all_[i]->status
                                                                  : MessageStatus{});
  return found;
}

}  // namespace quadriga::message
