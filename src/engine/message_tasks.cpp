// SPDX-License-Identifier: BSD-3-Clause
// src/engine/message_tasks.cpp: what tasks that are messages do when they are submitted and run.
#include "engine/message_tasks.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/config.h"
#include "engine/bodies.h"
#include "engine/engine_access.h"
#include "engine/engine_impl.h"
#include "engine/recorder.h"
#include "message/matching.h"

namespace quadriga {
namespace {

/// Of the task of the engine whose body this thread runs; 0: none.
std::uint64_t number_here(const Engine& engine) {
  const Task* const task = current_task(*EngineAccess::graph(engine));
  return task ? task->id.load(std::memory_order_relaxed) : 0;
}

using message::CallKind;

struct Params {
  MessageTasks* tasks = nullptr;
  MessageTask* task = nullptr;
};

message::ElementType element_of(DType type) {
  switch (type) {
    case DType::float32:
      return message::ElementType::float32;
    case DType::float64:
      return message::ElementType::float64;
    case DType::complex64:
      return message::ElementType::complex64;
    case DType::complex128:
      return message::ElementType::complex128;
    case DType::bytes:
      break;
  }
  return message::ElementType::bytes;
}

std::string rank_text(int rank) { return rank < 0 ? "any" : std::to_string(rank); }

std::string name_of(const MessageCall& call) {
  const std::string kind(message::name(call.kind));
  if (call.kind == CallKind::send) return kind + " to " + rank_text(call.peer);
  if (call.kind == CallKind::recv || call.peer >= 0) return kind + " from " + rank_text(call.peer);
  return kind;
}

/// Codelets outlive all tasks and traces: there are few, made once for the process.
/// `anywhere`: also on devices, see device_side.h.
const Codelet& codelet_of(const MessageTask& task, std::vector<Access> access, bool anywhere,
                          const Kernel& body) {
  static std::mutex mutex;
  using Key = std::tuple<std::string, std::vector<Access>, bool>;
  static auto& known = *new std::map<Key, Codelet>;
  const std::lock_guard lock(mutex);
  auto [found, is_new] = known.try_emplace({task.name, access, anywhere});
  if (is_new) {
    found->second.name = task.name;
    found->second.access = std::move(access);
    found->second.cpu = body;
    found->second.host_only = !anywhere;
    if (anywhere) {
      found->second.cuda = body;
      found->second.cost = [](const Arguments&) { return Cost{no_work, 0, 0}; };
    }
    (task.is_collective() ? found->second.blocks : found->second.detaches) = true;
  }
  return found->second;
}

std::vector<Access> accesses_of(const MessageTask& task) {
  std::vector<Access> access(task.shapes.size(), Access::read);
  if (task.into >= 0)
    access[static_cast<std::size_t>(task.into)] =
        task.from == task.into ? Access::update : Access::write;
  return access;
}

void check(const MessageTask& task) {
  const MessageCall& call = task.call;
  const int size = task.lane->messages().size();
  const bool any = call.kind == CallKind::recv;
  require(!std::isnan(call.seconds), "deadline isn't a number");
  if (call.peer >= size || (call.peer < 0 && !any && !task.is_collective()) ||
      (call.peer < 0 && call.peer != message::any_source))
    fail(Errc::invalid_argument, fmt::format("{}: rank {}; expected 0 to {}",
                                             message::name(call.kind), call.peer, size - 1));
  if (!task.is_collective() && call.tag < 0 && !(any && call.tag == message::any_tag))
    fail(Errc::invalid_argument, fmt::format("{}: tag is {}; expected 0 to 2147483647",
                                             message::name(call.kind), call.tag));
  if (call.kind == CallKind::probe || call.kind == CallKind::split || call.kind == CallKind::close)
    fail(Errc::invalid_argument, fmt::format("{} is no task", message::name(call.kind)));
}

}  // namespace

MessageShape MessageShape::of(const View& view) {
  const auto item = static_cast<std::int64_t>(size_of(view.dtype));
  return {element_of(view.dtype), {view.cols, view.rows}, {view.ld * item, item}, 0};
}

message::MessageBuffer MessageShape::at(const View& view) const {
  std::vector<std::int64_t> steps = strides;
  if (leading >= 0)
    steps[static_cast<std::size_t>(leading)] =
        view.ld * static_cast<std::int64_t>(size_of(view.dtype));
  return {message::Layout::view(shape, steps, element), static_cast<std::byte*>(view.data)};
}

/// Held by the engine's task: its end.
class MessageTasks::Left final : public DeviceSide {
 public:
  Left(Engine& engine, std::shared_ptr<MessageRooms> rooms, MessageTaskPtr task)
      : engine_(engine), rooms_(std::move(rooms)), task_(std::move(task)) {}
  ~Left() override {
    try {
      leave();
    } catch (const std::exception&) {
      // Without memory for it others wait until their deadlines.
    }
  }
  Left(const Left&) = delete;
  Left& operator=(const Left&) = delete;
  static void give_up(const MessageTask& task) {
    task.courier->later([lane = task.lane, name = task.name] {
      lane->collectives().give_up(name + " was cancelled before it began");
    });
  }

  std::optional<DeviceId> choose(const TaskRef& ref,
                                 std::span<const OperandPlace> places) noexcept override {
    if (task_->has_come) return come(places);
    if (!task_->sends() && task_->room) return std::nullopt;
    if (task_->fault) return by_host();  // It couldn't start; its body says why.
    // By way of the host a receive starts, and its deadline counts, once its predecessors have
    // ended; in a room it starts when they are issued.
    if (task_->sends() ? fits_slot() : task_->call.seconds >= 0) return by_host();
    task_->room = nullptr;
    const OperandPlace* const place = message_place(places, !task_->sends());
    if (place) task_->room = rooms_->take(*place, size_of_tile());
    if (!task_->room) return no_device;
    task_->id = ref.id;
    if (task_->sends()) return task_->room->device;
    return receive(ref) ? std::nullopt : std::optional(by_host());
  }
  bool moves_to_host() noexcept override {
    if (task_->sends()) task_->room = nullptr;
    return task_->sends();
  }
  bool goes_on() const noexcept override { return task_->sends(); }
  void go_on(const Promise& promise) noexcept override {
    try {
      task_->ran = true;
      task_->promise = promise;
      start();
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }

 private:
  DeviceId by_host() noexcept {
    task_->room = nullptr;
    return no_device;
  }
  /// By way of the host it ends without its receive; from a device it would wait for that, and
  /// whoever writes the tile with it.
  bool fits_slot() const noexcept {
    return size_of_tile() <= task_->lane->messages().endpoint().slot_bytes();
  }
  std::size_t size_of_tile() const noexcept {
    return static_cast<std::size_t>(task_->tile.rows * task_->tile.cols) *
           size_of(task_->tile.dtype);
  }
  void start() {
    View view = task_->tile;
    view.data = task_->room->memory;
    message::MessageBuffer place = task_->shapes.front().at(view);
    place.port = task_->room->port;
    place.device = task_->room->port_device;
    task_->places = {std::move(place)};
    task_->courier->hold(task_);
    task_->lane->ready(task_);
  }
  /// False if it mustn't start, which its body tells.
  bool receive(const TaskRef& ref) noexcept {
    try {
      task_->reopen = [&engine = engine_, ref](std::atomic<bool>& has_come) {
        EngineAccess::reopen(engine, ref, has_come);
      };
      start();
    } catch (...) {
      task_->reopen = nullptr;
      task_->fault = std::current_exception();
      return false;
    }
    return true;
  }
  /// The message lies in its room.
  DeviceId come(std::span<const OperandPlace> places) noexcept {
    const DeviceId device = task_->room->device;
    if (task_->fault) return no_device;
    if (std::ranges::any_of(places, [&](const auto& each) { return each.device == device; }))
      return device;
    task_->fault = std::make_exception_ptr(
        Error(Errc::device_lost, task_->name + ": the device that its message came to is lost"));
    return no_device;
  }
  void leave() {
    const std::shared_ptr<MessageRoom> room = std::move(task_->room);
    if (task_->is_collective()) {
      if (!task_->ran && task_->met.exchange(true)) give_up(*task_);
    } else if (task_->lane->leave(*task_)) {
      task_->courier->later([lane = task_->lane] { lane->start(); });
    }
  }
  Engine& engine_;
  const std::shared_ptr<MessageRooms> rooms_;
  const MessageTaskPtr task_;
};

MessageTasks::MessageTasks(Engine& engine)
    : engine_(engine),
      rooms_(std::make_shared<MessageRooms>(EngineAccess::truth(engine))),
      is_logged_(!Config::global().text("schedule_log").empty()) {}
MessageTasks::~MessageTasks() = default;

MessageTaskPtr MessageTasks::make(std::shared_ptr<MessageLane> lane, const MessageCall& call,
                                  std::vector<MessageShape> shapes, int from, int into) {
  if (engine_.options().virtual_clock)
    fail(Errc::unavailable, "messages take real time, and this engine runs under a virtual clock");
  auto task = std::make_shared<MessageTask>();
  task->call = call;
  task->name = name_of(call);
  task->lane = std::move(lane);
  task->shapes = std::move(shapes);
  task->from = from;
  task->into = into;
  check(*task);
  task->courier = &courier_for(task->lane->messages().shared_endpoint());
  return task;
}

Future MessageTasks::submit(const MessageTaskPtr& task, std::span<const Data> data,
                            SubmitOptions options) {
  const std::vector<Access> access = accesses_of(*task);
  require(data.size() == access.size(), "a message has an operand for each of its shapes");
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < data.size(); ++i) operands.push_back({data[i], access[i]});
  const bool anywhere = !task->is_collective() && rooms_->any() && !is_logged_;
  if (anywhere) {
    const Datum& datum = *EngineAccess::datum(data.front());
    task->tile = {nullptr, datum.rows, datum.cols, datum.rows, datum.dtype};
  }
  const Codelet& codelet = codelet_of(*task, access, anywhere, [](const Arguments& arguments) {
    const auto params = arguments.param<Params>();
    const MessageTaskPtr self = params.task->shared_from_this();
    if (self->is_collective())
      params.tasks->collect(self, arguments);
    else
      params.tasks->begin(self, arguments);
  });
  if (task->is_collective())
    options.sequence = task->lane->sequence_for(alive_, [this] { return engine_.sequence(); });
  task->lane->enter(*task);
  const Params params{this, task.get()};
  const auto left = std::make_shared<Left>(engine_, rooms_, task);
  const Future future =
      EngineAccess::submit(engine_, codelet, operands, std::as_bytes(std::span(&params, 1)),
                           options, nullptr, left, anywhere ? left.get() : nullptr);
  if (task->is_collective() && task->met.exchange(true)) Left::give_up(*task);
  return future;
}

void MessageTasks::begin(const MessageTaskPtr& task, const Arguments& arguments) {
  if (task->fault) std::rethrow_exception(task->fault);
  if (!arguments.promise) return copy(*task, arguments);
  task->ran = true;
  task->id = number_here(engine_);
  task->places.push_back(task->shapes.front().at(arguments.operands.front()));
  task->promise = *arguments.promise;
  task->courier->hold(task);
  task->lane->ready(task);
}

/// On a device: from the tile to the room, or back. The columns lie side by side there.
void MessageTasks::copy(const MessageTask& task, const Arguments& arguments) {
  const View& view = arguments.operands.front();
  const message::PackPart part{
      message::Layout::vector(view.cols, view.rows, view.ld, element_of(view.dtype)), view.data,
      task.room->memory};
  message::PortPacking& packing = task.room->port->packing();
  if (task.sends())
    packing.pack_on(arguments.stream, part);
  else
    packing.unpack_on(arguments.stream, part);
}

void MessageTasks::collect(const MessageTaskPtr& task, const Arguments& arguments) {
  task->id = number_here(engine_);
  for (std::size_t i = 0; i < task->shapes.size(); ++i)
    task->places.push_back(task->shapes[i].at(arguments.operands[i]));
  task->courier->begin_collective(task);
  const Promise promise = *arguments.promise;
  const auto interrupt = [&] {
    if (promise.cancelled()) fail(Errc::cancelled, task->name + ": the work was cancelled");
  };
  try {
    call(*task, {task->call.seconds, interrupt, {}});
  } catch (...) {
    task->courier->end_collective(task, true);
    throw;
  }
  task->courier->end_collective(task, false);
}

void MessageTasks::call(MessageTask& task, const message::Patience& patience) {
  message::CommunicatorCore& comm = task.lane->collectives();
  const message::MessageBuffer& from = task.place(task.from);
  const message::MessageBuffer& into = task.place(task.into);
  const int root = task.call.peer;
  switch (task.call.kind) {
    case CallKind::barrier:
      return comm.barrier(patience);
    case CallKind::bcast:
      return comm.broadcast(comm.rank() == root ? from : into, root, patience);
    case CallKind::reduce:
      return comm.reduce(from, into, task.call.operation, root, patience);
    case CallKind::allreduce:
      return comm.all_reduce(from, into, task.call.operation, patience);
    case CallKind::gather:
      return comm.gather(from, into, root, patience);
    case CallKind::allgather:
      return comm.all_gather(from, into, patience);
    case CallKind::scatter:
      return comm.scatter(from, into, root, patience);
    case CallKind::alltoall:
      return comm.all_to_all(from, into, patience);
    default:
      fail(Errc::internal, "no such collective");
  }
}

MessageTasks& MessageTasks::of(Engine& engine) {
  EngineAccess::Impl& impl = EngineAccess::impl(engine);
  const std::lock_guard lock(impl.messages_mutex);
  if (!impl.messages) impl.messages = std::make_unique<MessageTasks>(engine);
  return *impl.messages;
}

MessageCounters MessageTasks::counted(const Engine& engine) {
  MessageTasks* const known = EngineAccess::impl(engine).known_messages();
  return known ? known->counters() : MessageCounters{};
}

Courier& MessageTasks::courier_for(const std::shared_ptr<message::Endpoint>& endpoint) {
  const std::lock_guard lock(mutex_);
  for (const auto& each : couriers_)
    if (&each->endpoint() == endpoint.get()) return *each;
  return *couriers_.emplace_back(std::make_unique<Courier>(
      endpoint, [this] { return engine_.now(); },
      [this](const MessageTask& task, bool failed) { note(task, failed); }));
}

void MessageTasks::note(const MessageTask& task, bool failed) {
  const message::CommunicatorCore& comm = task.lane->messages();
  const auto world = [&](int rank) {
    return rank < 0 ? -1 : comm.group().world[static_cast<std::size_t>(rank)];
  };
  MessageEvent event{task.name, task.id, world(comm.rank()), comm.endpoint().size()};
  if (!task.is_collective()) {
    const int source = task.has_status ? task.status.source : task.call.peer;
    event.from = task.sends() ? event.rank : world(source);
    event.to = task.sends() ? world(task.call.peer) : event.rank;
    event.tag = task.has_status ? task.status.tag : task.call.tag;
  }
  event.context = comm.context();
  event.bytes = task.places.empty() ? 0 : task.places.front().bytes();
  event.failed = failed;
  event.end = engine_.now();
  event.begin = task.started > 0 ? task.started : event.end;
  EngineAccess::impl(engine_).recorder.message(std::move(event));
  if (failed) return;
  const std::lock_guard lock(mutex_);
  if (task.is_collective()) {
    ++counters_.collectives;
  } else if (task.sends()) {
    ++counters_.sent;
    counters_.bytes_sent += task.status.bytes;
  } else {
    ++counters_.received;
    counters_.bytes_received += task.status.bytes;
  }
  if (task.room) counters_.bytes_direct += task.status.bytes;
}

void MessageTasks::cancel(bool on) {
  std::vector<Courier*> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : couriers_) all.push_back(each.get());
  }
  for (Courier* const each : all) each->cancel(on);
}

std::string MessageTasks::status() {
  std::string text;
  const std::lock_guard lock(mutex_);
  for (const auto& each : couriers_) text += each->status();
  return text.empty() ? text : "messages of tasks:\n" + text;
}

MessageCounters MessageTasks::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void MessageTasks::reset_counters() {
  const std::lock_guard lock(mutex_);
  counters_ = {};
}

}  // namespace quadriga
