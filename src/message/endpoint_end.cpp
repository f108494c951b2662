// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint_end.cpp: transfers that are withdrawn, and how a rank leaves.
#include <quadriga/error.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "base/process.h"
#include "message/endpoint_hold.h"

namespace quadriga::message {
namespace {

using Clock = std::chrono::steady_clock;

// How often it is asked whether a device has read what it holds.
constexpr auto look_again = std::chrono::microseconds(50);

Clock::time_point end_of_hold() {
  const std::chrono::duration<double> longest(Endpoint::patience_while_held);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(longest);
}

// Memory that another rank's device may still read isn't given back to who might free it.
void keep_for_ever(std::vector<TransferPtr> transfers) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<TransferPtr>;
  const std::lock_guard lock(mutex);
  kept->insert(kept->end(), transfers.begin(), transfers.end());
}

}  // namespace

Endpoint::~Endpoint() {
  if (process_id() != owner_) {
    if (service_) service_->forget();
    return;
  }
  const std::string open = close({patience_at_end, {}});
  if (!open.empty()) log(LogLevel::warning, open);
  service_.reset();
  close_all(members_);
  std::vector<TransferPtr> held = traffic_.pending_sends();
  std::erase_if(held, [&](const auto& each) { return !traffic_.sends().is_held(*each); });
  if (!held.empty()) keep_for_ever(std::move(held));
}

// What is queued on the receiver's device ends by itself, but a process that is stopped doesn't say
// so. The receiver may be a thread of this process that waits for this rank's devices in turn.
void Endpoint::wait_while_held(Hold& hold, const MessageTransfer& transfer,
                               Clock::time_point until) {
  while (transfer.sends && traffic_.sends().is_held(transfer) && Clock::now() < until) {
    hold.pause();
    std::this_thread::sleep_for(look_again);
    hold.resume();
    traffic_.progress();
  }
}

bool Endpoint::cancel(const TransferPtr& transfer, BegunSends begun) {
  check_not_forked(owner_, "this communicator");
  Hold hold(*this);
  if (begun == BegunSends::withdrawn) wait_while_held(hold, *transfer, end_of_hold());
  if (transfer->done.load(std::memory_order_relaxed) || transfer->is_led) return false;
  if (!traffic_.cancel(transfer, begun)) return false;
  traffic_.end(*transfer,
               std::make_exception_ptr(Error(Errc::cancelled, transfer->text() + ": cancelled")));
  own_.ring();
  return true;
}

bool Endpoint::withdraw(const TransferPtr& transfer) {
  if (transfer->done.load(std::memory_order_acquire)) return false;
  if (cancel(transfer)) return true;
  // Its receiver has ended it, which the next look finds, or doesn't say whether it has.
  bool is_held = false;
  {
    const Hold hold(*this);
    traffic_.progress();
    is_held = transfer->sends && traffic_.sends().is_held(*transfer);
  }
  if (is_held)
    log(LogLevel::warning, transfer->text() +
                               " can't be withdrawn: the receiver's device may read its memory "
                               "until that process, which seems to be stopped, goes on");
  return false;
}

bool Endpoint::is_closed() {
  const Hold hold(*this);
  return closed_;
}

void Endpoint::on_close(std::function<void()> function) {
  const Hold hold(*this);
  on_close_.push_back(std::move(function));
}

std::string Endpoint::close(const Patience& patience) {
  check_not_forked(owner_, "this communicator");
  std::vector<std::function<void()>> first;
  {
    const Hold hold(*this);
    first.swap(on_close_);
  }
  for (const auto& each : first) each();
  Posting what;
  what.operation = CallKind::close;
  what.peer = any_source;
  what.group = std::make_shared<Group>();
  std::vector<TransferPtr> given_up;  // Destroyed after the lock.
  try {
    if (!is_closed()) wait_for([&] { return closed_ || traffic_.is_quiet(); }, what, patience);
  } catch (const Error&) {
    // Out of time: said below.
  } catch (...) {
    leave(given_up);
    throw;
  }
  return leave(given_up);
}

std::string Endpoint::leave(std::vector<TransferPtr>& given_up) {
  Hold hold(*this);
  std::string open;
  if (closed_) return open;
  closed_ = true;  // Nothing starts any more.
  given_up = traffic_.pending_sends();
  const Clock::time_point until = end_of_hold();  // Of all together.
  for (const TransferPtr& each : given_up) {
    wait_while_held(hold, *each, until);
    if (each->done.load(std::memory_order_relaxed)) continue;
    const bool is_held = traffic_.sends().is_held(*each);
    if (!is_held && !traffic_.cancel(each)) continue;
    open += (open.empty() ? "closed before these were received: " : ", ") + each->text();
    // What a device may still read goes on, and is kept.
    if (is_held) continue;
    traffic_.end(*each, std::make_exception_ptr(Error(
                            Errc::cancelled, each->text() + ": the communicator was closed")));
  }
  const auto error = [](const MessageTransfer& transfer) {
    return std::make_exception_ptr(
        Error(Errc::cancelled, transfer.text() + ": the communicator was closed"));
  };
  traffic_.drop_receives(error);
  traffic_.leave();
  return open;
}

}  // namespace quadriga::message
