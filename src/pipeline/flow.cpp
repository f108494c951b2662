// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow.cpp: a run's mail, its results and its end.
#include "pipeline/flow.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread.h"
#include "device/backend.h"
#include "pipeline/stage_error.h"

namespace quadriga {
namespace {

Nanoseconds real_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Nanoseconds real_deadline(double seconds) {
  return seconds < 0 ? never : real_now() + static_cast<Nanoseconds>(seconds * 1e9);
}

}  // namespace

Flow::Flow(Engine& engine, std::vector<Stage> stages, Pipeline::Source source,
           const FlowOptions& given)
    : engine_(engine),
      stages_(std::move(stages)),
      source_(std::move(source)),
      options_(given),
      admission_(given.host_bytes, std::size_t{8} * static_cast<std::size_t>(given.look_ahead)),
      stats_(engine.machine(), stages_, given.threads) {
  cut_segments();
  source_codelet_.name = "source";
  source_codelet_.host_only = true;
  source_codelet_.blocks = true;
  source_codelet_.cost = [](const Arguments&) { return Cost{no_work, 0, 0}; };
  source_codelet_.cpu = [](const Arguments& arguments) { arguments.param<Flow*>()->read_source(); };
  if (std::ranges::any_of(segments_, [](const auto& s) { return s->kind == StageKind::kernel; }))
    open_devices();
  stats_.begin(clock());
}

Flow::~Flow() {
  stop();
  if (thread_.joinable()) thread_.join();
  try {
    drive(-1, [this] { return is_over(); });
    EngineAccess::wait_until(
        engine_, [this] { return tasks_.all_ended(); }, -1);
    remove_data();
    for (auto& [name, held] : constants_) engine_.remove(held.first, true);
  } catch (...) {
    // The engine is broken: its own calls say so.
  }
}

/// Kernels in a row, and bodies of parallel stages in a row, are one segment each.
void Flow::cut_segments() {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const StageKind kind = stages_[i].kind;
    const bool joins = !segments_.empty() && segments_.back()->kind == kind &&
                       (kind == StageKind::kernel || kind == StageKind::parallel);
    if (joins) {
      segments_.back()->last = i + 1;
      continue;
    }
    auto segment = std::make_unique<Segment>();
    segment->first = i;
    segment->last = i + 1;
    segment->kind = kind;
    segment->codelet.name = stages_[i].name;
    segment->codelet.host_only = true;
    segment->codelet.blocks = !engine_.host_only();
    segment->codelet.cost = [](const Arguments&) { return Cost{no_work, 0, 0}; };
    segment->codelet.cpu = &Flow::host_body;
    segments_.push_back(std::move(segment));
  }
}

bool Flow::is_over() {
  if (!source_ended_.load() && !stopping_.load()) return false;
  if (source_runs_ || alive_ > 0) return false;
  const std::lock_guard lock(mutex_);
  return mail_.empty() && !pending_;
}

bool Flow::drain(double seconds) {
  if (!thread_.joinable()) return drive(seconds, [this] { return alive_ == 0; });
  std::unique_lock lock(results_mutex_);
  return result_there_.wait_for(lock, std::chrono::duration<double>(seconds),
                                [this] { return over_; });
}

/// Who takes the last mail may end the flow: nothing of it is touched without the lock.
void Flow::post(const Mail& mail) {
  const std::lock_guard lock(mutex_);
  mail_.push_back(mail);
  if (!has_mail_.exchange(true)) arrived_.notify_one();
}

/// False at the deadline, which is one of the real clock.
bool Flow::wait_for_mail(Nanoseconds deadline) {
  if (engine_.options().virtual_clock) {
    EngineAccess::wait_until(
        engine_, [&] { return has_mail_.load() || real_now() >= deadline; }, -1);
    return has_mail_.load();
  }
  std::unique_lock lock(mutex_);
  const auto has = [&] { return has_mail_.load(); };
  if (deadline == never) {
    arrived_.wait(lock, has);
    return true;
  }
  return arrived_.wait_for(
      lock, std::chrono::nanoseconds(std::max<Nanoseconds>(0, deadline - real_now())), has);
}

bool Flow::drive(double seconds, const std::function<bool()>& until) {
  const Nanoseconds deadline = real_deadline(seconds);
  while (true) {
    advance();
    if (until()) return true;
    if (deadline != never && real_now() >= deadline) return false;
    if (!has_mail_.load() && !wait_for_mail(deadline)) return false;
  }
}

bool Flow::advance() {
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(mail_);
    has_mail_.store(false);
  }
  const bool any = !taken_.empty();
  for (const Mail& mail : taken_) take(mail);
  taken_.clear();
  if (const int order = order_asked_.exchange(-1); order >= 0 && dispatch_)
    dispatch_->set_order(static_cast<Order>(order));
  // What leaves one stage may be due at another.
  do {
    moved_ = false;
    for (const auto& segment : segments_)
      if (segment->kind != StageKind::kernel) pump_host(*segment);
    if (dispatch_) pump_devices();
  } while (moved_);
  ask_source();
  return any;
}

void Flow::take(const Mail& mail) {
  switch (mail.kind) {
    case Mail::Kind::wake:
      return;
    case Mail::Kind::arrived:
      ++alive_;
      return begin_segment(*mail.item);
    case Mail::Kind::host:
      for (FlowItem* item = mail.item; item;) {
        FlowItem* const next = std::exchange(item->next, nullptr);
        host_ended(*item);
        item = next;
      }
      return;
    case Mail::Kind::staged:
      mail.item->staged = clock();
      return dispatch_->staged(mail.item->slot);
    case Mail::Kind::computed:
      return kernels_ended(*mail.item);
    case Mail::Kind::left:
      return left_device(*mail.item);
    case Mail::Kind::source:
      return source_ended();
  }
}

bool Flow::is_unwanted(const FlowItem& item) const {
  return stopping_.load() || (failure_ && item.chunk.number() > failure_->chunk);
}

/// The chunk has passed its segment.
void Flow::go_on(FlowItem& item) {
  ++item.segment;
  begin_segment(item);
}

void Flow::begin_segment(FlowItem& item) {
  moved_ = true;
  item.ready = clock();
  if (item.error || is_unwanted(item)) return drop(item);
  if (item.segment == segments_.size()) return finish(item);
  Segment& segment = *segments_[item.segment];
  if (segment.kind == StageKind::kernel) return begin_device(item, segment);
  begin_host(item, segment);
}

void Flow::fail_item(FlowItem& item, std::exception_ptr error, const std::string& stage) {
  if (item.error) return;
  item.error = std::move(error);
  item.failed_stage = stage;
}

/// A chunk that won't be a result: its number passes the stages that follow.
void Flow::drop(FlowItem& item) {
  moved_ = true;
  const std::uint64_t number = item.chunk.number();
  for (std::size_t s = item.segment; s < segments_.size(); ++s)
    if (segments_[s]->kind == StageKind::serial_in_order)
      segments_[s]->early.emplace(number, nullptr);
  if (item.error) {
    const ChunkFailure failure{number, item.failed_stage, item.error};
    const std::lock_guard lock(results_mutex_);
    stats_.failed(failure);
    if (options_.on_error == OnError::stop && (!failure_ || number < failure_->chunk))
      failure_ = failure;
  }
  {
    const std::lock_guard lock(results_mutex_);
    if (keeps_results_ && in_order_) results_.emplace(number, nullptr);
  }
  result_there_.notify_all();
  --alive_;
  give_back(item);
}

void Flow::finish(FlowItem& item) {
  --alive_;
  bool keeps;
  {
    const std::lock_guard lock(results_mutex_);
    stats_.arrived(clock() - item.read);
    keeps = keeps_results_;
    if (keeps && in_order_)
      results_.emplace(item.chunk.number(), &item);
    else if (keeps)
      completed_.push_back(&item);
  }
  if (keeps) return result_there_.notify_all();
  give_back(item);
}

/// Its memory and its place are free.
void Flow::give_back(FlowItem& item) {
  item.chunk = Chunk();
  item.error = nullptr;
  item.failed_stage.clear();
  const std::lock_guard lock(mutex_);
  if (item.is_ahead) --ahead_;
  item.is_ahead = false;
  if (item.is_let_in) admission_.leave(item.host_bytes);
  item.is_let_in = false;
  free_items_.push_back(&item);
}

void Flow::raise_if_failed() {
  std::optional<ChunkFailure> failure;
  {
    const std::lock_guard lock(results_mutex_);
    if (broken_) std::rethrow_exception(broken_);
    if (std::exchange(raised_, true)) return;
    failure = failure_;
  }
  if (failure) raise_stage_error(failure->chunk, failure->stage, failure->error);
  if (source_error_) raise_stage_error(read_.load(), "source", source_error_);
}

bool Flow::run(double seconds) {
  if (!drive(seconds, [this] { return is_over(); })) return false;
  {
    const std::lock_guard lock(results_mutex_);
    over_ = true;
    stats_.end(clock());
  }
  raise_if_failed();
  return true;
}

bool Flow::run_behind(double seconds) {
  if (engine_.options().virtual_clock) return run(seconds);
  if (!thread_.joinable()) start_thread();
  {
    std::unique_lock lock(results_mutex_);
    if (!result_there_.wait_for(lock, std::chrono::duration<double>(seconds),
                                [this] { return over_; }))
      return false;
  }
  raise_if_failed();
  return true;
}

/// Under the real clock the run goes on while nobody asks for results.
void Flow::start_thread() {
  thread_ = quadriga::start_thread([this] {
    std::exception_ptr error;
    try {
      drive(-1, [this] { return is_over(); });
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(results_mutex_);
      broken_ = error;
      over_ = true;
      stats_.end(clock());
    }
    result_there_.notify_all();
  });
}

FlowItem* Flow::take_result() {
  if (!in_order_) {
    if (completed_.empty()) return nullptr;
    FlowItem* const item = completed_.front();
    completed_.pop_front();
    return item;
  }
  while (!results_.empty() && results_.begin()->first == next_result_) {
    if (failure_ && next_result_ >= failure_->chunk) return nullptr;
    FlowItem* const item = results_.begin()->second;
    results_.erase(results_.begin());
    ++next_result_;
    if (item) return item;
  }
  return nullptr;
}

std::optional<Chunk> Flow::next(bool in_order, double seconds, bool& is_late) {
  is_late = false;
  const bool is_virtual = engine_.options().virtual_clock;
  FlowItem* found = nullptr;
  std::unique_lock lock(results_mutex_);
  if (!keeps_results_) {
    keeps_results_ = true;
    in_order_ = in_order;
    if (!is_virtual) start_thread();
  }
  const auto has_result = [&] { return (found = take_result()) != nullptr || over_; };
  if (is_virtual && !has_result()) {
    lock.unlock();
    const auto either = [&] {
      const std::lock_guard again(results_mutex_);
      over_ = over_ || is_over();
      return has_result();
    };
    is_late = !drive(seconds, either);
    lock.lock();
  } else if (!found) {
    if (seconds < 0)
      result_there_.wait(lock, has_result);
    else
      is_late = !result_there_.wait_for(lock, std::chrono::duration<double>(seconds), has_result);
  }
  lock.unlock();
  if (!found) {
    if (!is_late) raise_if_failed();
    return std::nullopt;
  }
  std::optional<Chunk> chunk = std::move(found->chunk);
  give_back(*found);
  post({Mail::Kind::wake, nullptr});
  return chunk;
}

void Flow::stop() {
  stopping_.store(true);
  post({Mail::Kind::wake, nullptr});
}

void Flow::set_order(Order order) {
  order_asked_.store(static_cast<int>(order));
  post({Mail::Kind::wake, nullptr});
}

PipelineStats Flow::stats() {
  const std::lock_guard lock(results_mutex_);
  PipelineStats stats = stats_.tell(clock());
  const std::lock_guard other(mutex_);
  stats.most_host_bytes = admission_.most_bytes_held();
  return stats;
}

std::vector<ChunkFailure> Flow::failures() {
  const std::lock_guard lock(results_mutex_);
  return stats_.failures();
}

}  // namespace quadriga
