// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow_source.cpp: the source is asked, by one task at a time, while there is room.
#include <utility>

#include "pipeline/flow.h"

namespace quadriga {

/// Guarded by mutex_.
bool Flow::has_room() const {
  return ahead_ < static_cast<std::size_t>(options_.look_ahead) && admission_.has_room(largest_);
}

void Flow::let_in(FlowItem& item) {
  admission_.enter(item.host_bytes);
  item.is_let_in = true;
  item.is_ahead = true;
  ++ahead_;
}

void Flow::ask_source() {
  if (stopping_.load() || failure_) {
    FlowItem* unwanted = nullptr;
    {
      const std::lock_guard lock(mutex_);
      unwanted = std::exchange(pending_, nullptr);
    }
    if (unwanted) give_back(*unwanted);
    source_ended_.store(true);
  }
  {
    const std::lock_guard lock(mutex_);
    if (pending_) {
      if (!admission_.fits(pending_->host_bytes)) return;
      let_in(*pending_);
      mail_.push_back({Mail::Kind::arrived, std::exchange(pending_, nullptr)});
      has_mail_.store(true);
    }
    if (source_runs_ || source_ended_.load() || !has_room()) return;
  }
  source_runs_ = true;
  source_group_ = std::make_unique<TaskGroup>();
  source_group_->on_end = [this] { post({Mail::Kind::source, nullptr}); };
  Flow* const self = this;
  submit_host(source_codelet_, std::as_bytes(std::span(&self, 1)), source_group_.get());
  source_group_->close();
}

void Flow::source_ended() {
  source_runs_ = false;
  source_group_.reset();
  if (source_ended_.load() && dispatch_) dispatch_->close();
}

/// The body of the source's task.
void Flow::read_source() {
  while (!stopping_.load() && !source_ended_.load() && read_one()) {
  }
}

/// False if it isn't to be asked again by this task.
bool Flow::read_one() {
  FlowItem* item = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!has_room()) return false;
    if (free_items_.empty()) {
      item = &items_.emplace_back();
      item->flow = this;
    } else {
      item = free_items_.back();
      free_items_.pop_back();
    }
  }
  item->chunk = Chunk(read_.load());
  item->segment = 0;
  item->host_bytes = 0;
  try {
    const Nanoseconds begin = clock();
    const bool more = source_(item->chunk);
    item->read = clock();
    stats_.worked(0, item->read - begin, more);
    if (!more) {
      source_ended_.store(true);
      give_back(*item);
      return false;
    }
  } catch (...) {
    source_error_ = std::current_exception();
    source_ended_.store(true);
    give_back(*item);
    return false;
  }
  read_.fetch_add(1);
  try {
    complete_fields(item->chunk);
    item->host_bytes = item->chunk.bytes();
    const std::lock_guard lock(mutex_);
    admission_.check(item->chunk.number(), item->host_bytes);
  } catch (...) {
    fail_item(*item, std::current_exception(), "source");
    item->host_bytes = 0;
  }
  const std::lock_guard lock(mutex_);
  largest_ = std::max(largest_, item->host_bytes);
  if (!admission_.fits(item->host_bytes)) {
    pending_ = item;
    return false;
  }
  let_in(*item);
  mail_.push_back({Mail::Kind::arrived, item});
  if (!has_mail_.exchange(true)) arrived_.notify_one();
  return true;
}

/// Adds what kernels will write, so that the bytes of the whole way are known.
void Flow::complete_fields(Chunk& chunk) const {
  for (const Stage& stage : stages_)
    for (const FieldUse& use : stage.uses) {
      if (!use.shape || use.is_temporary || chunk.find(use.name)) continue;
      const FieldShape shape = use.shape(chunk);
      chunk.add(use.name, shape.rows, shape.cols, shape.dtype);
    }
}

}  // namespace quadriga
