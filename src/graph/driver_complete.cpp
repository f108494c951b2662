// SPDX-License-Identifier: BSD-3-Clause
// src/graph/driver_complete.cpp: what the end of copies and kernels changes; failures; lost
// devices.
#include <fmt/format.h>

#include <algorithm>

#include "graph/driver.h"

namespace quadriga {
namespace {

bool is_device_lost(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& cause) {
    return cause.code() == Errc::device_lost;
  } catch (...) {
    return false;
  }
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& cause) {
    return cause.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

Driver::DeviceState* Driver::device_at(SpaceId space) {
  for (DeviceState& device : devices_)
    if (device.space == space) return &device;
  return nullptr;
}

std::uint64_t Driver::next_use(TileId tile, SpaceId space) const {
  for (const DeviceState& device : devices_)
    if (device.space == space) return plan_.next_use(tile, device.id);
  return no_next_use;
}

void Driver::evicted(TileId tile, SpaceId space) {
  if (DeviceState* const device = device_at(space))
    recorder_.mark(device->streams.front().lane, Mark::evict, tile, 0, now());
}

void Driver::departed(TileId tile, SpaceId space) {
  if (const DeviceState* const device = device_at(space)) plan_.departed(tile, device->id);
}

/// Content came home: who uses it soon had planned its fetches without it.
void Driver::fetchable(TileId tile, SpaceId from) {
  for (DeviceState& device : devices_) {
    if (device.space == host_space || device.space == from ||
        plan_.next_use(tile, device.id) == no_next_use)
      continue;
    device.fetches.clear();
    touch(device);
  }
}

void Driver::copy_ended(StreamId stream, Reason reason, TileId tile, SpaceId from, SpaceId to,
                        std::size_t bytes, const Completion& completion) {
  const int lane = lane_of_stream_[stream];
  for (const SpaceId space : {from, to})
    if (DeviceState* const device = device_at(space)) touch(*device);
  last_end_ = std::max(last_end_, completion.end);
  const bool is_home = to == memory_->directory().home(tile);
  if (to == host_space || is_home) fetchable(tile, from);
  if (!completion.error) {
    recorder_.copy(lane, reason, tile, from, to, bytes, completion.begin, completion.end);
    if (is_home) {
      recorder_.mark(lane, Mark::write_back, tile, 0, completion.end);
      retries_.erase(tile);
    }
    return;
  }
  doom_readers(tile, completion);
  if (is_device_lost(completion.error)) {
    // Between two devices it isn't known which is gone: copies of their own will tell.
    const bool is_known = from == host_space || to == host_space;
    for (const SpaceId space : {from, to}) {
      DeviceState* const device = space == host_space ? nullptr : device_at(space);
      if (!device || device->lost) continue;
      if (is_known)
        lose_device(*device, completion.error);
      else
        memory_->probe(space);
    }
  } else if (is_home) {
    retry_write_back(tile, reason);
  }
  if (!memory_->directory().written(tile)) content_lost(tile, completion.error);
}

void Driver::retry_write_back(TileId tile, Reason reason) {
  constexpr int most_tries = 4;
  const SpaceId owner = memory_->directory().owner(tile);
  if (owner == no_space || !memory_->confirmed(tile, owner))
    return;  // a new content goes home later
  if (++retries_[tile] < most_tries) {
    memory_->write_back(tile, reason);
    return;
  }
  retries_.erase(tile);
  memory_->lost(tile);
}

void Driver::probed(SpaceId space, const Completion& completion) {
  DeviceState* const device = device_at(space);
  for (DeviceState& each : devices_) touch(each);  // what was put off until now
  if (device && !device->lost && completion.error && is_device_lost(completion.error))
    lose_device(*device, completion.error);
}

/// Tasks in flight that waited for this copy work on nothing.
void Driver::doom_readers(TileId tile, const Completion& copy) {
  for (DeviceState& device : devices_)
    for (ComputeStream& compute : device.streams)
      for (auto& [ticket, planned] : compute.issued)
        for (std::size_t i = 0; i < planned->accesses.size(); ++i) {
          const PlannedAccess& access = planned->accesses[i];
          if (access.datum->tile == tile && !planned->overwrites(i) && !planned->doomed &&
              access.source == copy.event)
            planned->doomed = copy.error;
        }
}

/// The only replica is gone. Says so once, and refuses who would read it.
void Driver::content_lost(TileId tile, std::exception_ptr error) {
  Datum* const datum = plan_.uses(tile).datum;
  // Its writer fails as well, or runs again, as long as there is a home.
  if (datum && !datum->partial && !memory_->directory().home_lost(tile) && is_being_written(tile))
    return;
  // What was combined is not needed any more.
  if (!datum || (datum->partial && !datum->filled) || datum->poisoned.exchange(true)) return;
  const std::string_view lost =
      memory_->directory().home_lost(tile) ? "the memory" : "the only copy";
  const std::string what = fmt::format("{} of a {} x {} {} tile was lost", lost, datum->rows,
                                       datum->cols, name(datum->dtype));
  try {
    std::rethrow_exception(error);
  } catch (const Error& cause) {
    failures_.note(
        std::make_exception_ptr(Error(cause.code(), fmt::format("{}: {}", what, cause.what()))));
  } catch (const std::exception& cause) {
    failures_.note(
        std::make_exception_ptr(Error(Errc::io, fmt::format("{}: {}", what, cause.what()))));
  }
}

/// Names the operand whose home was in a lost device's memory.
Error Driver::home_lost(const PlannedTask& planned) const {
  for (const PlannedAccess& access : planned.accesses) {
    const Datum& datum = *access.datum;
    if (!memory_->directory().home_lost(datum.tile)) continue;
    const auto device = std::ranges::find(machine_.devices, datum.home_space, &Device::space);
    return {Errc::device_lost,
            fmt::format("a {} x {} {} tile is in the memory of device '{}', which is gone",
                        datum.rows, datum.cols, name(datum.dtype), device->name)};
  }
  return {Errc::internal, "no operand's home is lost"};
}

/// Says why as well: this may be the first that anybody hears of the loss.
Error Driver::none_left() const {
  std::string what = "no device that could run it is left";
  for (const DeviceState& device : devices_)
    if (device.lost)
      return {Errc::device_lost,
              fmt::format("{}; '{}' was lost: {}", what, machine_.devices[device.id].name,
                          text_of(device.loss))};
  return {Errc::device_lost, what};
}

void Driver::complete(const Completion& completion) {
  if (memory_->completed(completion)) return;
  touch(*compute_of_stream_[completion.event.stream].first);
  auto [device, stream] = compute_of_stream_[completion.event.stream];
  PlannedTask& planned = *stream->issued.front().second;
  stream->issued.pop_front();
  stream->issued_seconds = stream->issued.empty() ? 0 : stream->issued_seconds - planned.seconds;
  stream->waiting -= planned.waits;
  --device->issued;
  device->issued_seconds -= planned.ahead_seconds;
  if (device->issued == 0) device->issued_seconds = 0;
  last_end_ = std::max(last_end_, completion.end);
  const Nanoseconds duration = completion.end - completion.begin;
  if (!completion.error) {
    recorder_.kernel(planned.lane, *planned.task, completion.begin, completion.end,
                     recorder_.tracing() ? expected(planned) : 0);
    recorder_.computed(device->id, completion.begin, completion.end);
    work_ += duration;
    longest_path_ = std::max(longest_path_, planned.path + duration);
    planned.like->measured(*planned.counted, static_cast<double>(duration) / 1e9);
  }
  std::exception_ptr error = completion.error;
  if (!error && result_is_lost(planned)) error = device->loss;
  if (error && is_device_lost(error)) {
    ending_ = &planned;
    if (!device->lost) lose_device(*device, error);
    ending_ = nullptr;
    if (run_again(planned)) return;
  }
  planned.path += duration;
  finish(planned, error ? error : planned.doomed);
}

void Driver::written_ok(PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const TileId tile = planned.accesses[i].datum->tile;
    // Who wrote last decides whether the content is certain.
    if (writes(planned.task->operands[i].access) && plan_.uses(tile).last_writer == planned.number)
      memory_->confirm(tile);
  }
}

/// A partial result was combined, or will never be: its memory is free for others.
void Driver::empty_partials(PlannedTask& planned) {
  for (const OperandSlot& slot : planned.task->slots()) {
    Datum& datum = *slot.datum;
    if (!datum.partial) continue;
    if (!planned.issued) datum.filled = false;
    if (datum.filled) continue;  // by the next group
    datum.poisoned.store(false, std::memory_order_release);
    memory_->discard(datum.tile);
  }
}

/// What a failed task should have written is lost, unless a task that overwrites it was issued
/// since; tasks in flight that met it in between have failed as well.
void Driver::poison_written(PlannedTask& planned) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    if (!writes(slot.access)) continue;
    const TileUses& uses = plan_.uses(slot.datum->tile);
    const std::uint32_t epoch = planned.accesses[i].epoch;
    if (!planned.issued || uses.epoch == epoch)
      slot.datum->poisoned.store(true, std::memory_order_release);
    if (!planned.issued || uses.last_writer == planned.number) memory_->lost(slot.datum->tile);
    if (!planned.issued) continue;
    for (DeviceState& device : devices_)
      for (ComputeStream& stream : device.streams)
        for (auto& [ticket, other] : stream.issued)
          if (other->number > planned.number) poison_reader(*other, *slot.datum, epoch);
  }
}

void Driver::poison_reader(PlannedTask& planned, const Datum& datum, std::uint32_t epoch) {
  for (std::size_t i = 0; i < planned.accesses.size(); ++i) {
    const OperandSlot& slot = planned.task->operands[i];
    planned.poisoned |=
        slot.datum == &datum && slot.access != Access::write && planned.accesses[i].epoch == epoch;
  }
}

void Driver::finish(PlannedTask& planned, std::exception_ptr error) {
  Task& task = *planned.task;
  const DeviceId device = planned.device;
  const bool was_issued = planned.issued;
  if (planned.spared) {
    // nothing was written
  } else if (error || planned.poisoned || !was_issued) {
    failures_.record(task, error,
                     device == no_device ? "no device" : machine_.devices[device].name);
    poison_written(planned);
  } else {
    written_ok(planned);
  }
  Edge* const released = planned.released;
  const Nanoseconds path = planned.path;
  if (device != no_device && devices_[device].head == &planned) devices_[device].head = nullptr;
  if (was_issued)
    for (const PlannedAccess& access : planned.accesses)
      memory_->unpin(access.datum->tile, devices_[device].space);
  empty_partials(planned);
  if (planned.counted) planned.like->taken(*planned.counted);
  plan_.end(planned);
  for (const OperandSlot& slot : task.slots())
    if (writes(slot.access)) send_final_home(slot.datum->tile);
  const bool childless = task.children.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (childless && task.pending.load(std::memory_order_acquire) == 0)
    release(task, released, device, path);
  else
    waiting_[&task] = {released, device, path};
}

void Driver::release(Task& task, Edge* earlier, DeviceId device, Nanoseconds path) {
  Task* const parent = task.parent();
  TaskGroup* const group = std::exchange(task.group, nullptr);
  std::vector<Task*> late;
  graph_.ended(task, earlier, [&](Task& successor, std::uint64_t pending) {
    PlannedTask* const next = successor.planned;
    if (!next) {
      // It has run already, or the message that it was submitted is still to be read.
      if (!waiting_.contains(&successor))
        ready(successor, successor.id);
      else if (pending == 0)
        late.push_back(&successor);
      return;
    }
    next->path = std::max(next->path, path);
    if (next->activator == no_device) next->activator = device;
    activate(*next);
  });
  graph_.release(&task, free_);
  ended_.fetch_add(1, std::memory_order_release);
  if (group) group->ended.fetch_add(1, std::memory_order_release);
  if (parent && parent->children.fetch_sub(1, std::memory_order_acq_rel) == 1)
    late.push_back(parent);
  for (Task* const waiting : late) release_waiting(*waiting);
}

/// Ends a task that ran before, once neither children nor predecessors are left.
void Driver::release_waiting(Task& task) {
  const auto found = waiting_.find(&task);
  if (found == waiting_.end() || task.children.load(std::memory_order_acquire) != 0 ||
      task.pending.load(std::memory_order_acquire) != 0)
    return;
  const auto [released, device, path] = found->second;
  waiting_.erase(found);
  release(task, released, device, path);
}

void Driver::send_final_home(TileId tile) {
  const TileUses& uses = plan_.uses(tile);
  if (!uses.datum || !uses.datum->final || uses.writers > 0) return;
  if (uses.datum->poisoned.load() || !uses.datum->home || !memory_->stale_home(tile)) return;
  memory_->write_back(tile, Reason::final);
}

void Driver::fail_task(PlannedTask& planned, std::exception_ptr error) {
  failed_ = true;
  finish(planned, std::move(error));
}

Error Driver::no_buffer() const {
  return {Errc::too_large,
          fmt::format("tiles that aren't at home on the host have no room there: {}",
                      memory_->spill().refusal())};
}

/// Nothing is in flight: who waits for a buffer on the host would do so for ever. What isn't bound
/// to the host runs on a device instead.
bool Driver::fail_without_buffer() {
  for (DeviceState& device : devices_)
    if (device.head && device.lacks_buffer && device.space == host_space &&
        leave_host(*device.head))
      return true;
  const auto found = std::ranges::find_if(
      devices_, [](const DeviceState& device) { return device.head && device.lacks_buffer; });
  if (found == devices_.end()) return false;
  found->lacks_buffer = false;
  fail_task(*found->head, std::make_exception_ptr(no_buffer()));
  return true;
}

/// Once only: it isn't stolen back.
bool Driver::leave_host(PlannedTask& planned) {
  const auto found = std::ranges::find_if(devices_, [&](const DeviceState& device) {
    return device.space != host_space && can_run(device, *planned.task);
  });
  if (found == devices_.end() || planned.task->device != no_device) return false;
  devices_[planned.device].head = nullptr;
  plan_.unplace(planned);
  predict_on(planned, found->id);
  planned.left_host = true;
  plan_.place(planned, found->id);
  touch(*found);
  more_to_issue_ = true;
  return true;
}

/// Sets the device aside: what is placed there goes elsewhere, what only it held is lost.
void Driver::lose_device(DeviceState& device, const std::exception_ptr& cause) {
  device.lost = true;
  device.loss = cause;
  device.head = nullptr;
  device.fetches.clear();
  notice(fmt::format("device '{}' is set aside: {}", machine_.devices[device.id].name,
                     text_of(cause)));
  if (device.space != host_space) {
    std::vector<TileId> lost;
    memory_->space_lost(device.space, lost);
    for (const TileId tile : lost) content_lost(tile, cause);
  }
  const PlanSet& planned = plan_.on(device.id).planned;
  const std::vector<PlannedTask*> homeless(planned.begin(), planned.end());
  for (PlannedTask* const task : homeless) {
    plan_.unplace(*task);
    if (!task->ready) continue;
    task->ready = false;
    activate(*task);
  }
}

}  // namespace quadriga
