// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/pipeline.cpp: the public pipeline: collects stages, and runs them as a flow.
#include <quadriga/pipeline.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include "base/cgroup.h"
#include "base/units.h"
#include "pipeline/flow.h"
#include "pipeline/lent_memory.h"
#include "pipeline/pending.h"
#include "pipeline/read_order.h"
#include "pipeline/stream_estimate.h"

namespace quadriga {

namespace {

void require_shape(const std::string& name, const std::function<FieldShape(const Chunk&)>& shape) {
  require(shape != nullptr, "field '" + name + "' has no shape; expected a function of a chunk");
}

}  // namespace

FieldUses writes(std::string name, std::function<FieldShape(const Chunk&)> shape) {
  require_shape(name, shape);
  return {FieldUse{std::move(name), Access::write, std::move(shape)}};
}
FieldUses temporary(std::string name, std::function<FieldShape(const Chunk&)> shape) {
  require_shape(name, shape);
  return {FieldUse{std::move(name), Access::write, std::move(shape), {}, true}};
}
FieldUses constant(std::string name, const View& value) {
  return {FieldUse{std::move(name), Access::read, {}, value}};
}

FieldUses reduces(std::string name, std::function<FieldShape(const Chunk&)> shape,
                  StreamReduction reduction) {
  require_shape(name, shape);
  require(reduction.combine != nullptr,
          "result '" + name + "' has no function `combine`; expected one that adds two parts");
  FieldUse use{std::move(name), Access::update, std::move(shape)};
  use.reduction = std::make_shared<const StreamReduction>(std::move(reduction));
  return {std::move(use)};
}

struct Pipeline::Impl {
  explicit Impl(PipelineOptions given) : options(std::move(given)) {
    if (!options.memory.empty()) flow_options.memory_bytes = parse_bytes(options.memory);
    if (!options.host_memory.empty()) flow_options.host_bytes = parse_bytes(options.host_memory);
    check_options();
    flow_options.order = options.order;
    flow_options.on_error = options.on_error;
    flow_options.on_full = options.on_full;
    flow_options.look_ahead = options.look_ahead;
    flow_options.most_on_device = options.most_on_device;
    flow_options.most_on_link = options.most_on_link;
    flow_options.most_in_all = options.most_in_all;
    flow_options.threads = options.threads > 0 ? options.threads : usable_cores();
    if (!options.engine) {
      EngineOptions engine_options;
      engine_options.devices = options.devices;
      own = std::make_unique<Engine>(std::move(engine_options));
    }
    if (flow_options.host_bytes == 0) flow_options.host_bytes = engine().options().host_memory / 2;
  }

  void check_options() const {
    const auto expect = [](const char* name, long value, long least) {
      require(value >= least, std::string(name) + " is " + std::to_string(value) +
                                  "; expected at least " + std::to_string(least));
    };
    expect("look_ahead", options.look_ahead, 1);
    expect("most_on_device", options.most_on_device, 0);
    expect("most_on_link", options.most_on_link, 0);
    expect("most_in_all", options.most_in_all, 0);
    expect("threads", options.threads, 0);
    require(!options.engine || options.devices.empty(),
            "a pipeline got devices, and an engine too; expected one of them");
  }

  Engine& engine() { return options.engine ? *options.engine : *own; }

  /// The run, which the first call begins. Any thread.
  Flow& flow() {
    if (Flow* const begun = running()) return *begun;
    const std::lock_guard lock(beginning);
    if (flow_) return *flow_;
    require(source != nullptr, "the pipeline has no source; give it one by source()");
    pending = std::make_shared<Pending>(engine(), stages);
    flow_ = std::make_unique<Flow>(engine(), guarded_stages(), guarded_source(), flow_options);
    running_.store(flow_.get(), std::memory_order_release);
    return *flow_;
  }
  /// Null before the run has begun. Any thread.
  Flow* running() const { return running_.load(std::memory_order_acquire); }
  void set_order(Order order) {
    const std::lock_guard lock(beginning);
    flow_options.order = order;
    if (flow_) flow_->set_order(order);
  }

  std::shared_ptr<LentMemory> lent_memory(Lending of) const {
    std::vector<std::string> changed;
    for (const Stage& stage : stages)
      for (const FieldUse& use : stage.uses)
        if (use.access != Access::read) changed.push_back(use.name);
    return std::make_shared<LentMemory>(of, std::move(changed));
  }
  /// Where nothing computes, what is lent may be addresses without memory.
  bool is_guarded(Lending of) { return of != Lending::unchanging && engine().options().compute; }
  Source guarded_source() {
    Source followed = [next = source, pending = pending](Chunk& chunk) {
      if (!next(chunk)) return false;
      pending->settle(chunk);
      return true;
    };
    return is_guarded(lending) ? guarded(std::move(followed), lent_memory(lending)) : followed;
  }
  std::vector<Stage> guarded_stages() {
    std::vector<Stage> found = stages;
    for (Stage& stage : found)
      if (stage.split && is_guarded(stage.lending))
        stage.split = [split = stage.split, lent = lent_memory(stage.lending)](Chunk& chunk) {
          lent->asked();
          Source parts = split(chunk);
          return parts ? guarded(std::move(parts), lent) : parts;
        };
    return found;
  }
  static Source guarded(Source next, std::shared_ptr<LentMemory> lent) {
    return [next = std::move(next), lent = std::move(lent)](Chunk& chunk) {
      lent->asked();
      if (!next(chunk)) return false;
      lent->filled(chunk);
      return true;
    };
  }

  /// The one that the last stage, a kernel, has changed.
  std::string field_before(const std::string& library) const {
    std::set<std::string> changed;
    if (!stages.empty())
      for (const FieldUse& use : stages.back().uses)
        if (use.access != Access::read && !use.reduction) changed.insert(use.name);
    require(changed.size() == 1,
            "library '" + library +
                "' updates the field that the kernel before it changes, which "
                "there must be one of; expected its fields, such as {updates(\"x\")}");
    return *changed.begin();
  }

  void add(Stage stage) {
    require(!flow_, "stages are added before the run begins");
    stages.push_back(std::move(stage));
  }
  void add_keep(StageKind kind, Predicate keep, std::string name) {
    require(keep != nullptr, "stage '" + name + "' needs a body");
    Stage stage;
    stage.kind = kind;
    stage.name = std::move(name);
    stage.body = std::move(keep);
    add(std::move(stage));
  }
  void add_body(StageKind kind, Body body, std::string name) {
    Predicate keep;
    if (body) keep = [body = std::move(body)](Chunk& chunk) { return body(chunk), true; };
    add_keep(kind, std::move(keep), std::move(name));
  }

  /// By the smallest chunk and the largest.
  PipelineEstimate estimate_indexed(std::span<const double> seconds) {
    const std::vector<double>& sizes = *flow_options.sizes;
    require(!running_.load(), "estimate() by sizes comes before the run, which reads the source");
    require(!sizes.empty(), "estimate(): the source has no chunks");
    const auto [least, most] = std::ranges::minmax_element(sizes);
    std::vector<Chunk> read;
    for (const auto place : {least, most}) {
      Chunk& chunk = read.emplace_back(static_cast<std::uint64_t>(place - sizes.begin()));
      require(source(chunk), "sizes tell of chunk " + chunk.id().text() +
                                 ", and the source has none of that number");
    }
    return estimate_stream(engine().machine(), StagePlan(stages), flow_options, read, seconds,
                           sizes);
  }

  PipelineOptions options;
  FlowOptions flow_options;
  std::unique_ptr<Engine> own;
  std::deque<Codelet> libraries;  ///< Of stages; they stay where they are.
  std::vector<Stage> stages;
  Source source;
  Lending lending = Lending::fresh;
  std::shared_ptr<Pending> pending;  // What the run waits for.
  bool has_run = false;              // By run().
  std::mutex beginning;
  std::unique_ptr<Flow> flow_;  // Goes before the engine; guarded by `beginning` until it is there.
  std::atomic<Flow*> running_{nullptr};
};

Pipeline::Pipeline(PipelineOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;

Pipeline& Pipeline::source(Source next, Lending lending) {
  require(next != nullptr, "the source is empty; expected a function that returns chunks");
  require(!impl_->source, "the pipeline has a source already; expected source() once");
  impl_->source = std::move(next);
  impl_->lending = lending;
  return *this;
}

Pipeline& Pipeline::source(IndexedSource indexed, Lending lending) {
  const ReadOrder checked(indexed.sizes, Order::first_come, 0);
  source(std::move(indexed.read), lending);
  impl_->flow_options.sizes = std::make_shared<const std::vector<double>>(std::move(indexed.sizes));
  return *this;
}

Pipeline& Pipeline::kernel(const Codelet& codelet, std::initializer_list<FieldUses> uses,
                           Params params) {
  FieldUses all;
  for (const FieldUses& each : uses) all.insert(all.end(), each.begin(), each.end());
  return kernel(codelet, std::move(all), std::move(params));
}

Pipeline& Pipeline::kernel(const Codelet& codelet, FieldUses uses, Params params) {
  if (uses.size() != codelet.access.size())
    fail(Errc::invalid_argument, "codelet '" + codelet.name + "' takes " +
                                     std::to_string(codelet.access.size()) + " operands, got " +
                                     std::to_string(uses.size()) + " fields");
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (uses[i].access != codelet.access[i])
      fail(Errc::invalid_argument, "field '" + uses[i].name + "' of codelet '" + codelet.name +
                                       "' has mode " + std::string(name(codelet.access[i])) +
                                       " in its access, got " + std::string(name(uses[i].access)));
  require(!codelet.blocks && !codelet.detaches,
          "codelet '" + codelet.name + "' blocks or detaches; let it be a stage on the host");
  Stage stage;
  stage.kind = StageKind::kernel;
  stage.name = codelet.name;
  stage.codelet = &codelet;
  stage.uses = std::move(uses);
  stage.params = std::move(params);
  impl_->add(std::move(stage));
  return *this;
}

Pipeline& Pipeline::library(Codelet codelet, std::initializer_list<FieldUses> uses) {
  require(codelet.cpu || codelet.cuda, "library '" + codelet.name + "' has no function to call");
  FieldUses all;
  for (const FieldUses& each : uses) all.insert(all.end(), each.begin(), each.end());
  if (all.empty()) all = updates(impl_->field_before(codelet.name));
  for (const FieldUse& use : all) codelet.access.push_back(use.access);
  return kernel(impl_->libraries.emplace_back(std::move(codelet)), std::move(all));
}

Pipeline& Pipeline::parallel(Body body, std::string name) {
  impl_->add_body(StageKind::parallel, std::move(body), std::move(name));
  return *this;
}

Pipeline& Pipeline::serial(Body body, std::string name) {
  impl_->add_body(StageKind::serial, std::move(body), std::move(name));
  return *this;
}

Pipeline& Pipeline::serial_in_order(Body body, std::string name) {
  impl_->add_body(StageKind::serial_in_order, std::move(body), std::move(name));
  return *this;
}

Pipeline& Pipeline::filter(Predicate keep, std::string name, StageMode mode) {
  constexpr StageKind kinds[] = {StageKind::parallel, StageKind::serial,
                                 StageKind::serial_in_order};
  impl_->add_keep(kinds[static_cast<int>(mode)], std::move(keep), std::move(name));
  return *this;
}

Pipeline& Pipeline::flat_map(Split split, std::string memory, std::string name, Lending lending) {
  require(split != nullptr, "stage '" + name + "' is empty; expected a function of a chunk");
  Stage stage;
  stage.kind = StageKind::flat_map;
  stage.name = std::move(name);
  stage.split = std::move(split);
  stage.lending = lending;
  if (!memory.empty()) stage.most_bytes = parse_bytes(memory);
  impl_->add(std::move(stage));
  return *this;
}

Pipeline& Pipeline::takes(std::string_view stage, Seconds seconds) {
  require(seconds != nullptr, "takes() of '" + std::string(stage) +
                                  "' is empty; expected seconds, or a function of a chunk");
  require(!impl_->flow_, "what stages take is stated before the run begins");
  bool is_known = stage == "source";
  if (is_known) impl_->flow_options.source_seconds = seconds;
  for (Stage& each : impl_->stages)
    if (each.name == stage && each.kind != StageKind::kernel) {
      each.seconds = seconds;
      is_known = true;
    }
  if (!is_known)
    fail(Errc::invalid_argument,
         "takes(): no stage on the host is named '" + std::string(stage) + "'");
  return *this;
}

Pipeline& Pipeline::takes(std::string_view stage, double seconds) {
  return takes(stage, [seconds](const Chunk&) { return seconds; });
}

PipelineStats Pipeline::run() {
  Flow& flow = impl_->flow();
  require(!std::exchange(impl_->has_run, true),
          "a pipeline runs once; make another one for another run");
  flow.run(-1);
  return flow.stats();
}

std::optional<Chunk> Pipeline::next(bool in_order) {
  bool is_late = false;
  return impl_->flow().next(in_order, -1, is_late);
}

PipelineEstimate Pipeline::estimate(std::span<const Chunk> chunks,
                                    std::span<const double> host_seconds) {
  if (chunks.empty() && impl_->flow_options.sizes) return impl_->estimate_indexed(host_seconds);
  return estimate_stream(impl_->engine().machine(), StagePlan(impl_->stages), impl_->flow_options,
                         chunks, host_seconds);
}

void Pipeline::stop() { impl_->flow().stop(); }
void Pipeline::set_order(Order order) { impl_->set_order(order); }
PipelineStats Pipeline::stats() const {
  const Flow* const flow = impl_->running();
  return flow ? flow->stats() : PipelineStats{};
}
std::vector<ChunkFailure> Pipeline::failures() const {
  const Flow* const flow = impl_->running();
  return flow ? flow->failures() : std::vector<ChunkFailure>{};
}
View Pipeline::reduced(std::string_view name) const {
  const Flow* const flow = impl_->running();
  const auto known = flow ? flow->reduced() : std::map<std::string, View>{};
  const auto found = known.find(std::string(name));
  if (found != known.end()) return found->second;
  fail(Errc::invalid_argument, "there is no result '" + std::string(name) +
                                   "': no kernel reduces to it, no chunk came, or the run hasn't "
                                   "ended well");
}
Engine& Pipeline::engine() const { return impl_->engine(); }

}  // namespace quadriga
