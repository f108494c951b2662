// SPDX-License-Identifier: BSD-3-Clause
// src/message/step_runner.h: takes a rank's steps of a schedule by messages.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "message/collective_times.h"
#include "message/pack/reduce.h"
#include "message/schedules/schedule.h"
#include "message/transfer.h"

namespace quadriga::message {

/// What steps are taken with. All of it may throw, which ends the run.
struct StepMeans {
  std::function<TransferPtr(int peer, int lane, const MessageBuffer& place)> start_send;
  std::function<TransferPtr(int peer, int lane, const MessageBuffer& place)> start_receive;
  /// Returns once one of the transfers has ended.
  std::function<void(std::span<const TransferPtr> transfers)> wait_any;
  /// Afterwards the transfer doesn't use its memory any more.
  std::function<void(const TransferPtr& transfer)> withdraw;
  /// Where the bytes of a step are.
  std::function<MessageBuffer(const StepPlace& place, std::int64_t bytes)> place;
  Combine combine;                ///< On the host.
  std::size_t element_bytes = 1;  ///< Of what is combined.
  /// What is done on devices if any of the places is there; it has ended as a transfer has.
  std::function<TransferPtr(const MessageBuffer& from, const MessageBuffer& into)> start_copy;
  std::function<TransferPtr(const MessageBuffer& into, const MessageBuffer& from,
                            const MessageBuffer& with)>
      start_reduction;
  StepTimes* times = nullptr;  ///< Null: nobody asks.
};

/// Copies elements of the host; the places may be the same, but mustn't overlap else unless both
/// lie side by side.
void copy_on_host(const MessageBuffer& from, const MessageBuffer& into);

/// Takes all steps; whatever happens, nothing uses their memory afterwards.
void take_steps(const RankSteps& steps, const StepMeans& means);

}  // namespace quadriga::message
