// SPDX-License-Identifier: BSD-3-Clause
// src/engine/cancelling.cpp: flags are set, tasks end, and what they left on the way comes home.
#include "engine/cancelling.h"

#include <exception>

namespace quadriga {

/// Tasks that were cancelled may have left copies of their operands on the way, and those that ran
/// results on devices: either would meet what the host writes next.
void Cancelling::settle() {
  try {
    parts_.executor.bring_all_home(never);
  } catch (const std::exception&) {
    // What can't come home now is as before; the next wait says so.
  }
}

/// By tasks that run at once: what nobody uses.
void Cancelling::settle_renamed() {
  try {
    parts_.waits.until_ended(parts_.renaming.bring_idle_home(), never);
  } catch (const std::exception&) {
    // As above.
  }
}

void Cancelling::begin() {
  const std::lock_guard lock(mutex_);
  parts_.executor.cancel(true);
  parts_.messages(true);
  ++calls_;
}

void Cancelling::end() {
  const std::lock_guard lock(mutex_);
  if (--calls_ > 0) return;
  parts_.messages(false);
  parts_.executor.cancel(false);
}

void Cancelling::without_turn(Task* inside) {
  const auto all_ended = [&] {
    return inside ? inside->children.load(std::memory_order_acquire) == 1
                  : parts_.executor.ended() >= parts_.graph.submitted();
  };
  const bool settles = !inside && !parts_.is_ending;
  begin();
  try {
    parts_.reductions.end_all(inside);
    parts_.executor.wait(all_ended, never, Checked::by_anybody);
    if (settles) settle();
    parts_.renaming.keep_what_was_not_copied();
  } catch (...) {
    end();
    throw;
  }
  end();
  if (settles) settle_renamed();
  parts_.failures.take_first();
}

void Cancelling::all(Task* inside) {
  std::unique_lock<std::mutex> turn(turn_, std::defer_lock);
  if (!inside) turn.lock();
  without_turn(inside);
}

}  // namespace quadriga
