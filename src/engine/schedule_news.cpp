// SPDX-License-Identifier: BSD-3-Clause
// src/engine/schedule_news.cpp: who reads of failures, copies, kernels and freed blocks.
#include "engine/schedule_news.h"

#include <cstring>

#include "device/kinds.h"

namespace quadriga {

void ScheduleNews::failed(Task& task, std::exception_ptr error, DeviceId device) {
  readers_.failures.record(task, std::move(error),
                           device == no_device ? "no device" : machine_.devices[device].name);
}

/// Who watches a datum answers for it; all others hear of it by their next wait.
void ScheduleNews::content_lost(Datum& datum, std::exception_ptr error) {
  if (datum.watch) return datum.watch->copied(datum, no_space, std::move(error));
  readers_.failures.note(std::move(error));
}

void ScheduleNews::copied(const EndedCopy& copy, const Completion& completion) {
  if (copy.datum && copy.datum->watch)
    copy.datum->watch->copied(*copy.datum, copy.to, completion.error);
  readers_.record.copied(copy, completion);
}

void ScheduleNews::ran(const PlannedTask& planned, const Completion& completion) {
  readers_.record.ran(planned, completion);
  if (promise_ && is_detached(*planned.task->codelet)) promise_(*planned.task);
}

/// Who still reads it finds NaN.
void ScheduleNews::freed(SpaceId space, std::byte* block, std::size_t bytes) {
  const DeviceId device = spaces_.spaces()[space].device;
  if (poisons_ && properties_of(machine_.devices[device].kind).host_reaches_memory)
    std::memset(block, 0xff, bytes);
}

}  // namespace quadriga
