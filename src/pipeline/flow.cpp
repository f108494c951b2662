// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/flow.cpp: mail, and what follows from it.
#include "pipeline/flow.h"

#include <memory>
#include <utility>

#include "base/thread.h"
#include "engine/occupied.h"
#include "pipeline/stage_error.h"
#include "pipeline/stats_json.h"

namespace quadriga {

Flow::Flow(Engine& engine, std::vector<Stage> stages, Pipeline::Source source,
           const FlowOptions& given)
    : engine_(engine),
      nesting_(engine, stages, source),
      plan_(std::move(stages)),
      options_(given),
      mail_(engine),
      stats_(engine.machine(), plan_.stages(), given.threads),
      time_(engine),
      buffers_(plan_.has_kernels() ? host_buffers(engine, given.host_bytes) : nullptr),
      shares_(plan_.shares_of(given.host_bytes)),
      intake_(
          parts(),
          {shares_.front(), 0, 0, "source", given.source_seconds, given.on_full == OnFull::drop},
          stats_.source()),
      hosts_(parts(), *this) {
  require(given.on_full == OnFull::wait || !engine.options().virtual_clock || given.source_seconds,
          "by the virtual clock a source that drops chunks needs the time that it takes for one: "
          "takes(\"source\", seconds)");
  ChunkRouter& router = *this;
  if (plan_.has_kernels()) {
    devices_.emplace(parts(), router);
    stats_.open(devices_->devices());
  }
  for (std::size_t s = 0; s < plan_.segments().size(); ++s)
    if (plan_.segments()[s].kind == StageKind::flat_map)
      flat_maps_.try_emplace(s, parts(), router, s, shares_[flat_maps_.size() + 1]);
  open_source(std::move(source));
  stats_.begin(engine_.now());
}

void Flow::open_source(Pipeline::Source source) {
  if (!options_.sizes) return intake_.open(std::move(source));
  require(options_.on_full == OnFull::wait,
          "a source of known sizes waits for room: on_full is for live data");
  const std::size_t devices = devices_ ? devices_->devices().size() : 0;
  intake_.open(std::move(source), ReadOrder(*options_.sizes, options_.order, devices));
  reads_by_size_ = true;
  if (devices_) devices_->expect_order(true);
  if (plan_.keeps_order()) keep_source_order();
}

/// Who needs chunks in order would hold all that are read before the one that is next.
void Flow::keep_source_order() {
  reads_by_size_ = false;
  intake_.set_order(Order::first_come);
  if (devices_) devices_->expect_order(false);
}

Flow::~Flow() {
  stop();
  const Awaiting waits(engine_, Awaiting::Always());
  if (thread_.joinable()) thread_.join();
  is_ending_ = true;
  const auto or_broken = [](const auto& wait) {
    try {
      wait();
    } catch (...) {
      // The engine is broken: its own calls say so.
    }
  };
  or_broken([this] { drive(-1, [this] { return is_over(); }); });
  // Tasks end a little later than what they do, and use the codelets of the stages until then.
  const auto wait_for_tasks = [this] {
    EngineAccess::wait_until(
        engine_, [this] { return hosts_.all_ended(); }, -1);
  };
  or_broken([&] { call_apart(engine_, wait_for_tasks); });
  if (buffers_) buffers_->close();
}

bool Flow::is_over() const { return alive_ == 0 && intake_.is_over() && mail_.is_empty(); }

/// In a body that may wait, what the run submits is nothing of its task's.
bool Flow::drive(double seconds, const std::function<bool()>& until) {
  bool is_met = false;
  call_apart(engine_, [&] { is_met = drive_apart(seconds, until); });
  return is_met;
}

bool Flow::drive_apart(double seconds, const std::function<bool()>& until) {
  const Deadline deadline(seconds);
  while (true) {
    if (mail_.claim() && has_done(until)) return true;
    if (deadline.has_passed()) return false;
    if (!mail_.wait(deadline)) return false;
  }
}

/// Of a claim, which it releases.
bool Flow::has_done(const std::function<bool()>& until) {
  const auto release = [](Mailbox* mail) { mail->release(); };
  const std::unique_ptr<Mailbox, decltype(release)> claim(&mail_, release);
  if (broken_) std::rethrow_exception(std::exchange(broken_, nullptr));
  advance();
  if (refused_ && !is_ending_) std::rethrow_exception(std::exchange(refused_, nullptr));
  return until();
}

bool Flow::bodies_drive() const {
  return !devices_ && !engine_.options().virtual_clock && engine_.host_only();
}

void Flow::tell(const Mail& mail) {
  if (!bodies_drive()) return mail_.post(mail);
  mail_.leave(mail);
  drive_here();
}

/// By a worker, for which what it submits is nothing of its task's. The thread that waits sees to
/// what may be the end.
void Flow::drive_here() {
  while (!mail_.is_empty() && mail_.claim()) {
    try {
      call_apart(engine_, [this] { advance(); });
    } catch (...) {
      broken_ = std::current_exception();
    }
    const bool may_have_ended =
        broken_ || refused_ || (alive_ == 0 && (stopping_.load() || intake_.is_over()));
    mail_.release();
    if (may_have_ended) return mail_.wake();
  }
}

void Flow::advance() {
  mail_.take(taken_);
  for (const Mail& mail : taken_) take(mail);
  taken_.clear();
  if (const int order = order_asked_.exchange(-1); order >= 0) {
    if (devices_) devices_->set_order(static_cast<Order>(order));
    if (reads_by_size_) intake_.set_order(static_cast<Order>(order));
  }
  // What leaves one stage may be due at another.
  do {
    moved_ = false;
    hosts_.pump();
    if (devices_) devices_->pump();
    for (auto& [segment, stage] : flat_maps_) stage.pump();
  } while (moved_);
  if (stopping_.load())
    intake_.close();
  else if (failure_)
    intake_.end_at(failure_->chunk.number);
  intake_.pump();
  if (bodies_drive()) mail_.expect_drivers(hosts_.keeps_cores_busy());
}

void Flow::take(const Mail& mail) {
  switch (mail.kind) {
    case Mail::Kind::wake:
      return;
    case Mail::Kind::arrived:
      ++alive_;
      return begin_segment(*mail.item);
    case Mail::Kind::host:
      return hosts_.ended(*mail.item);
    case Mail::Kind::staged:
      return devices_->staged(*mail.item);
    case Mail::Kind::computed:
      return devices_->computed(*mail.item);
    case Mail::Kind::left:
      return devices_->left(*mail.item);
    case Mail::Kind::asked:
      return asked(*mail.intake);
  }
}

void Flow::asked(Intake& intake) {
  const bool has_ended = intake.task_ended();
  if (const std::exception_ptr refusal = intake.take_refusal()) refused_ = refusal;
  if (&intake != &intake_ || !has_ended) return;
  if (devices_ && flat_maps_.empty() && !intake.holds_chunk()) devices_->close();
  if (intake.error()) note_failure({intake.failed_id(), "source", intake.error()});
}

/// What was made of it before a failure are chunks like others.
void Flow::split(FlowItem& item, const std::optional<ChunkFailure>& failure) {
  moved_ = true;
  if (failure) count_failure(*failure);
  --alive_;
  Intake::release(item);
}

bool Flow::is_unwanted(const ChunkId& chunk) const {
  return stopping_.load() || (failure_ && chunk > failure_->chunk);
}

void Flow::passed(FlowItem& item) {
  ++item.segment;
  begin_segment(item);
}

void Flow::begin_segment(FlowItem& item) {
  moved_ = true;
  item.ready = engine_.now();
  if (item.error || item.is_filtered || is_unwanted(item.chunk.id())) return dropped(item);
  const std::vector<Segment>& segments = plan_.segments();
  while (item.segment < segments.size() && segments[item.segment].kind != StageKind::flat_map &&
         !item.passed.has_any(segments[item.segment]))
    hosts_.wont_come(item.segment++, item.sequence);
  if (item.segment == segments.size()) return finish(item);
  switch (segments[item.segment].kind) {
    case StageKind::kernel:
      return devices_->begin(item);
    case StageKind::flat_map:
      return flat_maps_.at(item.segment).add(item);
    default:
      return hosts_.add(item);
  }
}

/// Its place in the order passes the stages that follow.
void Flow::dropped(FlowItem& item) {
  moved_ = true;
  // A failure is known before those behind it may be results.
  if (item.error)
    count_failure({item.chunk.id(), item.failed_stage, item.error});
  else if (item.is_filtered)
    stats_.dropped();
  const std::vector<Segment>& segments = plan_.segments();
  for (std::size_t s = item.segment; s < segments.size(); ++s) {
    if (segments[s].generation != item.generation) break;
    if (segments[s].kind == StageKind::flat_map)
      flat_maps_.at(s).wont_come(item.sequence);
    else
      hosts_.wont_come(s, item.sequence);
  }
  if (item.generation == plan_.last_generation()) results_.wont_come(item.sequence);
  --alive_;
  Intake::release(item);
}

void Flow::count_failure(const ChunkFailure& failure) {
  stats_.failed(failure);
  if (options_.on_error == OnError::raise) note_failure(failure);
}

void Flow::note_failure(const ChunkFailure& failure) {
  if (failure_ && failure_->chunk <= failure.chunk) return;
  failure_ = failure;
  results_.fail(failure);
}

void Flow::finish(FlowItem& item) {
  --alive_;
  stats_.arrived(item.ready - item.read);
  if (!results_.put(item)) Intake::release(item);
}

/// A run that was left, or failed, has no results of all chunks.
void Flow::combine(std::exception_ptr& broken) {
  if (!devices_ || broken || failure_ || stopping_.load()) return;
  try {
    devices_->combine();
  } catch (...) {
    broken = std::current_exception();
  }
}

void Flow::end_run(std::exception_ptr broken) {
  combine(broken);
  const Nanoseconds now = engine_.now();
  stats_.end(now);
  EngineAccess::section(engine_, "stream", stats_.begun(), now,
                        engine_.options().trace ? to_json(stats()) : std::string());
  results_.end(std::move(broken));
}

void Flow::raise_if_failed() {
  if (const auto failure = results_.take_failure()) raise_stage_error(*failure);
}

bool Flow::run(double seconds) {
  const Awaiting waits(engine_);
  if (!drive(seconds, [this] { return is_over(); })) return false;
  end_run();
  raise_if_failed();
  return true;
}

bool Flow::run_behind(double seconds) {
  if (engine_.options().virtual_clock) return run(seconds);
  const Awaiting waits(engine_);
  if (!thread_.joinable()) start_thread();
  if (!results_.wait_over(Deadline(seconds))) return false;
  raise_if_failed();
  return true;
}

/// Under the real clock the run goes on while nobody asks for results.
void Flow::start_thread() {
  const auto drive_to_end = [this] {
    std::exception_ptr error;
    try {
      drive(-1, [this] { return is_over(); });
    } catch (...) {
      error = std::current_exception();
    }
    end_run(error);
  };
  try {
    thread_ = quadriga::start_thread("quadriga chunks", drive_to_end);
  } catch (...) {
    results_.end(std::current_exception());  // none will come
    throw;
  }
}

std::optional<Chunk> Flow::next(bool in_order, double seconds, bool& is_late) {
  is_late = false;
  const Awaiting waits(engine_);
  const bool is_virtual = engine_.options().virtual_clock;
  if (results_.keep(in_order)) {
    if (in_order) keep_source_order();
    if (!is_virtual) start_thread();
  }
  FlowItem* const found =
      is_virtual ? next_by_driving(seconds, is_late) : results_.take(Deadline(seconds), is_late);
  if (!found) {
    if (!is_late) raise_if_failed();
    return std::nullopt;
  }
  std::optional<Chunk> chunk = std::move(found->chunk);
  chunk->memory = nullptr;
  Intake::release(*found);
  mail_.post({Mail::Kind::wake, nullptr});
  return chunk;
}

FlowItem* Flow::next_by_driving(double seconds, bool& is_late) {
  FlowItem* found = results_.take();
  if (found || results_.is_over()) return found;
  is_late = !drive(seconds, [&] { return (found = results_.take()) != nullptr || is_over(); });
  if (!found && !is_late) end_run();
  return found;
}

bool Flow::drain(double seconds) {
  const Awaiting waits(engine_, Awaiting::Always());
  if (thread_.joinable()) return results_.wait_over(Deadline(seconds));
  return drive(seconds, [this] { return alive_ == 0; });
}

void Flow::stop() {
  stopping_.store(true);
  intake_.stop();
  for (auto& [segment, stage] : flat_maps_) stage.stop();
  mail_.post({Mail::Kind::wake, nullptr});
}

void Flow::set_order(Order order) {
  order_asked_.store(static_cast<int>(order));
  mail_.post({Mail::Kind::wake, nullptr});
}

std::map<std::string, View> Flow::reduced() const {
  return devices_ && results_.is_over() ? devices_->reduced() : std::map<std::string, View>{};
}

PipelineStats Flow::stats() const {
  PipelineStats stats = stats_.tell(engine_.now());
  stats.most_host_bytes = intake_.most_bytes_held();
  for (const auto& [segment, stage] : flat_maps_) stats.most_host_bytes += stage.most_bytes_held();
  return stats;
}

}  // namespace quadriga
