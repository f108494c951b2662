// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver_news.cpp: what the scheduler tells the driver, and the bodies that it runs.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/bodies.h"
#include "engine/driver.h"
#include "schedule/recovery.h"
#include "schedule/variants.h"

namespace quadriga {
namespace {

#ifdef NDEBUG
constexpr bool poisons_freed_blocks = false;
#else
constexpr bool poisons_freed_blocks = true;
#endif

}  // namespace

// What the scheduler tells.

void Driver::failed(Task& task, std::exception_ptr error, DeviceId device) {
  failures_.record(task, std::move(error),
                   device == no_device ? "no device" : machine_.devices[device].name);
}

void Driver::noticed(std::string text) {
  std::lock_guard lock(wait_mutex_);
  notices_.push_back(std::move(text));
}

void Driver::marked(DeviceId device, Mark mark, TileId tile, std::uint64_t task) {
  const bool is_timed = recorder_.tracing();
  recorder_.mark(lane_of_device_[device], mark, tile, task, is_timed ? now() : 0);
}

void Driver::copied(const EndedCopy& copy, const Completion& completion) {
  extent_.last_end = std::max(extent_.last_end, completion.end);
  if (copy.datum && copy.datum->watch)
    copy.datum->watch->copied(*copy.datum, copy.to, completion.error);
  if (completion.error) return;
  const int lane = lane_of_stream_[completion.event.stream];
  recorder_.copy(lane, copy.reason, copy.tile, copy.from, copy.to, copy.bytes, completion.begin,
                 completion.end);
  if (copy.goes_home) recorder_.mark(lane, Mark::write_back, copy.tile, 0, completion.end);
}

void Driver::ran(const PlannedTask& planned, const Completion& completion) {
  if (planned.spared) {
    const Nanoseconds when = now();
    return recorder_.kernel(lane_of_device_[planned.device], *planned.task, when, when);
  }
  const Nanoseconds duration = completion.end - completion.begin;
  recorder_.kernel(lane_of_stream_[completion.event.stream], *planned.task, completion.begin,
                   completion.end, recorder_.tracing() ? expected_time(machine_, planned) : 0);
  recorder_.computed(planned.device, completion.begin, completion.end);
  extent_.last_end = std::max(extent_.last_end, completion.end);
  extent_.work += duration;
  extent_.longest_path = std::max(extent_.longest_path, planned.path + duration);
}

/// Who still reads it finds NaN. Under the virtual clock protection catches that instead.
void Driver::freed(SpaceId space, std::byte* block, std::size_t bytes) {
  const DeviceId device = spaces_->spaces()[space].device;
  if (poisons_freed_blocks && !virtual_ && machine_.devices[device].kind == DeviceKind::emulated)
    std::memset(block, 0xff, bytes);
}

/// Whether a task that wrote one of its operands failed: the scheduler may not know that yet.
bool Driver::met_failure(const PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (slot.access != Access::write && planned.number > slot.datum->failed_number.load() &&
        planned.accesses[i].epoch == slot.datum->failed_epoch.load())
      return true;
  }
  return false;
}

void Driver::note_failure(const PlannedTask& planned) noexcept {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (!writes(slot.access)) continue;
    slot.datum->failed_epoch.store(planned.accesses[i].epoch);
    slot.datum->failed_number.store(planned.number);
  }
}

/// On a thread of the backend.
void Driver::run(const PlannedTask& planned, const Arguments& arguments) {
  try {
    if (met_failure(planned)) fail(Errc::cancelled, "an operand's producer failed");
    run_variant(planned, arguments);
  } catch (...) {
    if (!is_device_lost(std::current_exception())) note_failure(planned);  // else it runs again
    throw;
  }
}

void Driver::run_variant(const PlannedTask& planned, const Arguments& arguments) {
  const DeviceKind kind = machine_.devices[planned.device].kind;
  const Codelet& codelet = *planned.task->codelet;
  if (is_detached(codelet))
    return run_detached(*this, virtual_ ? nullptr : &blocking_, graph_, *planned.task, arguments);
  const RunningTask running(graph_, planned.task);
  // Partial results that this task is the first to fill are set to the neutral element.
  for (std::size_t i = 0; i < arguments.operands.size() && planned.to_init; ++i)
    if (planned.to_init >> i & 1)
      variant_for(*codelet.init, kind)({arguments.operands.subspan(i, 1), {}, arguments.stream});
  run_body(graph_, *planned.task, variant_for(codelet, kind), arguments);
}

}  // namespace quadriga
