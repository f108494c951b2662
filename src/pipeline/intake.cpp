// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/intake.cpp: asking the source, and letting in what it gives.
#include "pipeline/intake.h"

#include <quadriga/error.h>

#include <algorithm>
#include <utility>

namespace quadriga {

Intake::Intake(const FlowParts& parts, const IntakePlace& place, StageCounter& counter)
    : parts_(parts),
      place_(place),
      counter_(counter),
      admission_(place.most_bytes,
                 std::size_t{8} * static_cast<std::size_t>(parts.options.look_ahead),
                 place.purpose) {
  codelet_.name = place.name;
  codelet_.host_only = true;
  codelet_.blocks = true;
  codelet_.cost = [](const Arguments&) { return Cost{no_work, 0, 0}; };
  codelet_.cpu = &Intake::body;
}

void Intake::open(Pipeline::Source source) {
  source_ = std::move(source);
  error_ = nullptr;
  made_.store(0);
  ended_.store(false);
}

void Intake::open(Pipeline::Source source, ReadOrder order) {
  ended_.store(order.left() == 0);
  source_ = std::move(source);
  const std::lock_guard lock(mutex_);
  reading_ = std::move(order);
}

void Intake::set_order(Order order) {
  const std::lock_guard lock(mutex_);
  if (reading_) reading_->set_order(order);
}

void Intake::open(const Pipeline::Split& split, FlowItem& parent) {
  parent_ = &parent;
  split_ = split;
  open(nullptr);
}

/// Counts the time of a call, also of one that throws or finds no chunk. Stated times are counted
/// when they have passed.
class Intake::Working {
 public:
  explicit Working(Intake& intake) : intake_(intake), begin_(intake.parts_.engine.now()) {}
  ~Working() {
    if (!gave_ && !intake_.is_slow())
      intake_.counter_.worked_for_none(intake_.parts_.engine.now() - begin_);
  }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

  void gave_chunk(Nanoseconds end) {
    gave_ = true;
    if (!intake_.is_slow()) intake_.counter_.worked(end - begin_, end - begin_);
  }

 private:
  Intake& intake_;
  const Nanoseconds begin_;
  bool gave_ = false;
};

ChunkId Intake::next_id() const {
  if (!parent_) return {made_.load()};
  ChunkId id = parent_->chunk.id();
  id.parts.push_back(static_cast<std::uint32_t>(made_.load()));
  return id;
}

void Intake::pump() {
  FlowItem* arrived = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (pending_) {
      if (!admission_.fits(pending_->host_bytes)) return;
      let_in(*pending_);
      arrived = std::exchange(pending_, nullptr);
    }
  }
  if (arrived) {
    parts_.mail.post({Mail::Kind::arrived, arrived});
    if (ended_.load() && !task_ && !parent_) parts_.mail.post({Mail::Kind::asked, nullptr, this});
  }
  {
    const std::lock_guard lock(mutex_);
    if (task_ || ended_.load() || !may_begin()) return;
  }
  if (const Nanoseconds since = std::exchange(full_since_, -1); since >= 0)
    counter_.reserving.fetch_add(parts_.engine.now() - since);
  task_ = std::make_unique<TaskGroup>();
  task_->on_end = [this] {
    const Mail mail{Mail::Kind::asked, nullptr, this};
    // Room for more comes with the end of a body, or of somebody's look at a result.
    ended_.load() ? parts_.mail.post(mail) : parts_.mail.post_lazily(mail);
  };
  Intake* const self = this;
  submit_body(parts_.engine, codelet_, std::as_bytes(std::span(&self, 1)), *task_);
  task_->close();
}

bool Intake::task_ended() {
  // The body throws nothing.
  if (task_) refusal_ = EngineAccess::failure_of(parts_.engine, *task_);
  if (refusal_) close();
  task_.reset();
  if (FlowItem* const item = std::exchange(slow_, nullptr)) {
    if (item->read == never) {
      take_time(*item);
      return false;
    }
    admit(*item);
  }
  if (!ended_.load()) full_since_ = parts_.engine.now();
  return ended_.load();
}

void Intake::close() {
  ended_.store(true);
  FlowItem* unwanted = nullptr;
  {
    const std::lock_guard lock(mutex_);
    unwanted = std::exchange(pending_, nullptr);
  }
  if (unwanted) release(*unwanted);
}

void Intake::end_at(std::uint64_t number) {
  if (!reading_) return close();
  FlowItem* unwanted = nullptr;
  {
    const std::lock_guard lock(mutex_);
    reading_->end_at(number);
    if (pending_ && pending_->chunk.number() > number) unwanted = std::exchange(pending_, nullptr);
  }
  if (unwanted) release(*unwanted);
  if (has_read_all()) ended_.store(true);
}

/// Of a source that gives any chunk.
bool Intake::has_read_all() const {
  if (!reading_) return false;
  const std::lock_guard lock(mutex_);
  return reading_->left() == 0;
}

bool Intake::holds_chunk() const {
  const std::lock_guard lock(mutex_);
  return pending_ != nullptr;
}

bool Intake::is_over() const {
  if (task_ || slow_ || !(ended_.load() || stopping_.load())) return false;
  const std::lock_guard lock(mutex_);
  return !pending_;
}

void Intake::entered(FlowItem& item) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(item.is_ahead, false)) --ahead_;
}

/// What was made of a chunk may refer to its memory.
void Intake::release(FlowItem& item) {
  FlowItem* ended = &item;
  while (ended && ended->users.fetch_sub(1) == 1) {
    FlowItem* const parent = ended->parent;
    if (!parent) ended->home.parts_.stats.released();
    ended->home.give_back(*ended);
    ended = parent;
  }
}

void Intake::give_back(FlowItem& item) {
  item.chunk = Chunk();
  item.error = nullptr;
  item.failed_stage.clear();
  const std::lock_guard lock(mutex_);
  if (std::exchange(item.is_ahead, false)) --ahead_;
  if (std::exchange(item.is_let_in, false)) admission_.leave(item.host_bytes);
  free_.push_back(&item);
}

void Intake::resized(FlowItem& item, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  admission_.resize(item.host_bytes, bytes);
  item.host_bytes = bytes;
}

std::size_t Intake::most_bytes_held() const {
  const std::lock_guard lock(mutex_);
  return admission_.most_bytes_held();
}

/// Guarded by mutex_.
bool Intake::has_room() const {
  return ahead_ < static_cast<std::size_t>(parts_.options.look_ahead) &&
         admission_.has_room(largest_);
}

/// Guarded by mutex_. A source that doesn't wait is asked all the time.
bool Intake::may_ask() const { return place_.drops || has_room(); }

/// Guarded by mutex_. A task that asks begins when half of the places are free, so that it is worth
/// the switch to its thread. Devices choose among all that are ahead, which stay as many as can be.
bool Intake::may_begin() const {
  const bool has_places = parts_.plan.has_kernels() ||
                          ahead_ <= static_cast<std::size_t>(parts_.options.look_ahead) / 2;
  return place_.drops || (has_places && has_room());
}

/// Guarded by mutex_.
void Intake::let_in(FlowItem& item) {
  admission_.enter(item.host_bytes);
  item.is_let_in = true;
  item.is_ahead = true;
  ++ahead_;
}

void Intake::body(const Arguments& arguments) {
  Intake& self = *arguments.param<Intake*>();
  try {
    if (self.parent_ && !self.source_) {
      const Working working(self);
      self.source_ = self.split_(self.parent_->chunk);
    }
    require(self.source_ != nullptr, "a flat_map's function returns a source");
  } catch (...) {
    self.error_ = std::current_exception();
    self.ended_.store(true);
  }
  while (!self.stopping_.load() && !self.ended_.load() && self.read_one()) {
  }
}

/// Null if there is no room.
FlowItem* Intake::free_item() {
  const std::lock_guard lock(mutex_);
  if (!may_ask()) return nullptr;
  if (free_.empty()) return &items_.emplace_back(parts_.mail, *this);
  FlowItem* const item = free_.back();
  free_.pop_back();
  return item;
}

/// The chunk to be read; nothing if there are no more.
std::optional<ChunkId> Intake::take_id() {
  if (!reading_) return next_id();
  const std::lock_guard lock(mutex_);
  const auto number = reading_->next();
  return number ? std::optional(ChunkId{*number}) : std::nullopt;
}

/// Whether others are read all the same: those before a chunk that couldn't be.
bool Intake::found_none(std::uint64_t number) {
  if (!reading_) return false;
  failed_ = number;
  const std::lock_guard lock(mutex_);
  reading_->end_at(number);
  return reading_->left() > 0;
}

/// False if the source isn't to be asked again by this task.
bool Intake::read_one() {
  FlowItem* const item = free_item();
  if (!item) return false;
  std::optional<ChunkId> id = take_id();
  if (!id) return give_back(*item), ended_.store(true), false;
  item->chunk = Chunk(*std::move(id));
  item->chunk.memory = parts_.memory;
  if (parent_) item->chunk.stages = parent_->chunk.stages;
  item->parent = nullptr;
  item->users.store(1);
  item->segment = place_.segment;
  item->generation = place_.generation;
  item->is_filtered = false;
  item->stay.losses = 0;
  item->stay.added.clear();
  item->host_bytes = 0;
  if (!ask(*item)) {
    const bool goes_on = found_none(item->chunk.number());
    if (!goes_on) ended_.store(true);
    give_back(*item);
    return goes_on;
  }
  if (has_read_all()) ended_.store(true);
  made_.fetch_add(1);
  item->sequence = sequence_++;
  if (parent_) {
    item->parent = parent_;
    parent_->users.fetch_add(1);
  }
  measure(*item);
  if (!is_slow()) return admit(*item);
  item->read = never;
  slow_ = item;
  return false;
}

/// The driver's.
void Intake::take_time(FlowItem& item) {
  double seconds = 0;
  try {
    if (!item.error) seconds = stated_seconds(place_.seconds, item.chunk);
  } catch (...) {
    item.fail(std::current_exception(), place_.name);
  }
  const Nanoseconds begin = parts_.engine.now();
  slow_ = &item;
  task_ = parts_.time.pass(seconds, [this, begin, &item] {
    const Nanoseconds end = parts_.engine.now();
    item.read = parent_ ? parent_->read : end;
    counter_.worked(end - begin, end - begin);
    parts_.mail.post({Mail::Kind::asked, nullptr, this});
  });
}

/// False if it waits for room.
bool Intake::admit(FlowItem& item) {
  bool is_in = true;
  {
    const std::lock_guard lock(mutex_);
    largest_ = std::max(largest_, item.host_bytes);
    is_in = admission_.fits(item.host_bytes) && (!place_.drops || has_room());
    if (is_in) {
      let_in(item);
    } else if (!place_.drops) {
      pending_ = &item;
      return false;
    }
  }
  if (!is_in) return miss(item), true;
  parts_.mail.post_more({Mail::Kind::arrived, &item});  // the task's end follows
  return true;
}

/// There is no room: the next one gets its place in the order.
void Intake::miss(FlowItem& item) {
  --sequence_;
  parts_.stats.missed();
  release(item);
}

/// False at the source's end, which may be its failure.
bool Intake::ask(FlowItem& item) {
  try {
    Working working(*this);
    const bool more = source_(item.chunk);
    const Nanoseconds end = parts_.engine.now();
    item.read = parent_ ? parent_->read : end;
    if (more) working.gave_chunk(end);
    if (!more && reading_ && !stopping_.load())
      fail(Errc::invalid_argument, "sizes tell of chunk " + item.chunk.id().text() +
                                       ", and the source has none of that number");
    return more;
  } catch (...) {
    error_ = std::current_exception();
    return false;
  }
}

/// The bytes of its whole way; a chunk that can't pass is one that failed.
void Intake::measure(FlowItem& item) {
  try {
    item.passed = parts_.plan.passed_by(item.chunk);
    parts_.plan.complete(item.chunk, item.passed);
    const std::size_t bytes =
        item.chunk.bytes() + parts_.plan.returned_bytes(item.chunk, item.passed);
    admission_.check(item.chunk.id(), bytes);
    item.host_bytes = bytes;
  } catch (...) {
    item.fail(std::current_exception(), place_.name);
  }
}

}  // namespace quadriga
