// SPDX-License-Identifier: BSD-3-Clause
// src/engine/adoption.cpp: the task that waits for a stream of others.
#include "engine/adoption.h"

#include <fmt/format.h>
#include <quadriga/engine.h>

#include <utility>

#include "engine/engine_access.h"
#include "engine/engine_impl.h"

namespace quadriga {
namespace {

Codelet make_adoption() {
  Codelet codelet;
  codelet.name = "adoption";
  codelet.access = {Access::update};
  codelet.cpu = [](const Arguments& arguments) {
    arguments.param<const ForeignEvent*>()->queue_wait(arguments.stream);
  };
  codelet.cuda = codelet.cpu;
  codelet.cost = [](const Arguments&) { return Cost{no_work, 0, 0}; };
  codelet.waits_to_queue = true;  // kernels that don't need the data pass it, on other streams
  return codelet;
}

}  // namespace

const Codelet& adoption() {
  static const Codelet codelet = make_adoption();
  return codelet;
}

void AdoptedEvents::keep(const TaskRef& task, std::unique_ptr<ForeignEvent> event) {
  const std::lock_guard lock(mutex_);
  std::erase_if(adopted_, [&](const Adopted& each) { return graph_.ended(each.task); });
  adopted_.push_back({task, std::move(event)});
}

void Engine::follow(Data data, std::uintptr_t stream) {
  Impl& impl = checked();
  const Datum* const datum = EngineAccess::datum(data);
  require(datum && datum->engine == &impl, "follow(): not data of this engine, or removed before");
  DeviceId device = 0;
  while (device < impl.machine.devices.size() &&
         impl.machine.devices[device].space != datum->home_space)
    ++device;
  if (!datum->home || datum->home_space == host_space || device == impl.machine.devices.size())
    fail(Errc::invalid_argument,
         fmt::format("follow(): {} aren't on a device: expected data that was registered with "
                     "their device",
                     text_of(*datum)));
  std::unique_ptr<ForeignEvent> event = impl.executor->devices().mark(device, stream);
  if (!event) return;
  const ForeignEvent* const awaited = event.get();
  SubmitOptions options;
  options.device = device;
  const Future task = submit(adoption(), {{data, Access::update}}, awaited, options);
  impl.adopted.keep({task.task_, task.id_}, std::move(event));
}

}  // namespace quadriga
