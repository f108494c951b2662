// SPDX-License-Identifier: BSD-3-Clause
// src/message/transfer_ends.h: how the transfers of a rank end, and what is done about it once
// nobody holds the lock any more.
//
// Invariants
//   1. All functions are called with the endpoint's lock.
//   2. What transfers kept is destroyed, and what is to be logged is logged, without the lock:
//      both run code of the program's.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error_text.h"
#include "base/log.h"
#include "message/transfer.h"

namespace quadriga::message {

/// What is left of ended transfers; whoever takes it destroys it without the lock.
struct Leftovers {
  struct Note {
    LogLevel level = LogLevel::error;
    std::string text;
  };
  std::vector<std::shared_ptr<void>> kept;
  std::vector<Note> notes;
  /// Logs, and lets go.
  ~Leftovers() {
    for (const Note& each : notes) log(each.level, each.text);
  }
  Leftovers() = default;
  Leftovers(Leftovers&&) = default;
  Leftovers& operator=(Leftovers&&) = delete;
};

class TransferEnds {
 public:
  /// Ends it; who waits for it sees that.
  void end(MessageTransfer& transfer, std::exception_ptr error = nullptr) {
    if (transfer.keep) left_.kept.push_back(std::move(transfer.keep));
    // Its caller has gone on: a later call tells it only if the peer or the device is lost.
    if (error && transfer.is_led)
      note(LogLevel::error,
           transfer.text() + ", for which a stream waits, failed: " + quadriga::text_of(error));
    transfer.finish(std::move(error));
    any_ = true;
  }
  void note(LogLevel level, std::string text) { left_.notes.push_back({level, std::move(text)}); }
  Leftovers take_left() noexcept {
    Leftovers taken;
    taken.kept.swap(left_.kept);
    taken.notes.swap(left_.notes);
    return taken;
  }
  /// Whether any ended since it was asked last.
  bool take_any() noexcept { return std::exchange(any_, false); }

 private:
  Leftovers left_;
  bool any_ = false;
};

}  // namespace quadriga::message
