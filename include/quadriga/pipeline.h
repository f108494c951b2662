// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/pipeline.h: streams: chunks through stages on the host and on all devices.
#pragma once

#include <quadriga/chunk.h>
#include <quadriga/codelet.h>
#include <quadriga/engine.h>
#include <quadriga/pipeline_options.h>
#include <quadriga/pipeline_stats.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace quadriga {

/// Rows, columns and type of a field that a kernel writes.
struct FieldShape {
  std::int64_t rows = 0;
  std::int64_t cols = 1;
  DType dtype = DType::float64;
};

/// How the partial results of several devices become one result.
struct StreamReduction {
  /// Sets a part to the neutral element; empty: to zeros.
  std::function<void(const View& part)> init = {};
  std::function<void(const View& into, const View& part)> combine;  ///< On the host, at the end.
};

/// One field of a chunk as a kernel's operand, or data that all chunks share.
struct FieldUse {
  std::string name;
  Access access = Access::read;
  std::function<FieldShape(const Chunk& chunk)> shape = {};  ///< Of a new field.
  View constant = {};         ///< Shared by all chunks, read only, kept on the devices.
  bool is_temporary = false;  ///< Lives on the device, for consecutive kernels.
  std::shared_ptr<const StreamReduction> reduction =
      {};  ///< Of a result of all chunks, of one shape.
};
using FieldUses = std::vector<FieldUse>;

template <class... Fields>
FieldUses reads(Fields... names) {
  return {FieldUse{names, Access::read}...};
}
template <class... Fields>
FieldUses updates(Fields... names) {
  return {FieldUse{names, Access::update}...};
}
/// A field that the kernel writes entirely; `shape` is called when the chunk arrives.
FieldUses writes(std::string name, std::function<FieldShape(const Chunk&)> shape);
/// The same for a field that only the kernels that follow directly update or read.
FieldUses temporary(std::string name, std::function<FieldShape(const Chunk&)> shape);
FieldUses constant(std::string name, const View& value);
/// A result that the kernel updates for each chunk, in a partial result per device; these are
/// copied home and combined once, at the end, in the order of devices: Pipeline::reduced().
FieldUses reduces(std::string name, std::function<FieldShape(const Chunk&)> shape,
                  StreamReduction reduction);

template <class OfStream>
class PerStream;

/// A call of a library with what it needs once per stream, such as a plan: Pipeline::library().
template <class OfStream>
struct LibraryCall {
  using Call = std::function<void(OfStream& plan, const Arguments& arguments)>;
  std::string name;
  Call cpu = {};   ///< On CPU cores and emulated devices; empty: it doesn't run there.
  Call cuda = {};  ///< Queues on arguments.stream.
  std::function<Cost(const Arguments& arguments)> cost = {};  ///< As Codelet's.
};

/// A stream of chunks through stages. Add the stages in order; then call run() or next().
///
/// Errors:  a stage's failure is raised as task_failed, naming stage and chunk, with the stage's
///          exception nested in it (std::rethrow_if_nested); too_large if a chunk can't pass;
///          invalid_argument if a kernel's or a task's body, or that of a stage on the host without
///          accelerators, runs a pipeline on the engine that it runs on itself.
class Pipeline {
 public:
  /// Fills a chunk; false: there are no more. Called by one thread at a time, when there is room.
  using Source = std::function<bool(Chunk& chunk)>;
  using Body = std::function<void(Chunk& chunk)>;
  /// Whether to keep a chunk.
  using Predicate = std::function<bool(Chunk& chunk)>;
  /// A source of a chunk's parts; the chunk lives until all of them have ended.
  using Split = std::function<Source(Chunk& chunk)>;
  using Seconds = std::function<double(const Chunk& chunk)>;
  /// The bytes that a kernel gets as its parameters, by chunk.
  using Params = std::function<std::vector<std::byte>(const Chunk& chunk)>;

  explicit Pipeline(PipelineOptions options = {});
  ~Pipeline();  ///< Stops a run: started work ends, the rest is dropped.
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) = delete;

  Pipeline& source(Source next, Lending lending = Lending::fresh);
  /// Errors: invalid_argument if a size isn't a finite number, at least 0; of the run, naming a
  /// chunk that has a size and isn't there, once those before have arrived.
  Pipeline& source(IndexedSource source, Lending lending = Lending::fresh);
  /// Operands in the order of `uses`; consecutive kernels run where the chunk is, without a copy.
  /// The codelet must outlive the pipeline. Errors: invalid_argument if modes disagree.
  Pipeline& kernel(const Codelet& codelet, std::initializer_list<FieldUses> uses,
                   Params params = {});
  Pipeline& kernel(const Codelet& codelet, FieldUses uses, Params params = {});
  template <class P>
  Pipeline& kernel(const Codelet& codelet, std::initializer_list<FieldUses> uses, const P& params) {
    const auto bytes = std::as_bytes(std::span(&params, 1));
    return kernel(
        codelet, uses,
        Params([kept = std::vector(bytes.begin(), bytes.end())](const Chunk&) { return kept; }));
  }
  /// A kernel that calls a library with what per_stream(make) (per_stream.h) makes for its stream.
  /// Default of `uses`: it updates the field that the kernel before writes or updates. Errors:
  /// invalid_argument if there isn't one such field, or `call` has no function.
  template <class OfStream>
  Pipeline& library(const std::type_identity_t<LibraryCall<OfStream>>& call,
                    std::shared_ptr<PerStream<OfStream>> plans,
                    std::initializer_list<FieldUses> uses = {}) {
    const auto with_plan = [&plans](const auto& of_plan) -> Kernel {
      if (!of_plan) return nullptr;
      return [of_plan, plans](const Arguments& a) { of_plan(plans->of(a), a); };
    };
    Codelet codelet{};
    codelet.name = call.name;
    codelet.cpu = with_plan(call.cpu);
    codelet.cuda = with_plan(call.cuda);
    codelet.cost = call.cost;
    return library(std::move(codelet), uses);
  }
  /// On the host: several chunks at once; one at a time; one at a time in the source's order.
  Pipeline& parallel(Body body, std::string name = "parallel");
  Pipeline& serial(Body body, std::string name = "serial");
  Pipeline& serial_in_order(Body body, std::string name = "serial_in_order");

  /// Chunks that aren't kept end here, as if the source had not yielded them.
  Pipeline& filter(Predicate keep, std::string name = "filter",
                   StageMode mode = StageMode::parallel);
  /// Replaces a chunk by several, or none. `memory`, such as "64MiB", limits the bytes of these
  /// chunks in progress; the stage waits for room, so a chunk may become any number. Default: an
  /// equal share of half of host_memory. Chunks are split in the order of the source. What their
  /// parts lend may be parts of the chunk's own fields.
  Pipeline& flat_map(Split split, std::string memory = {}, std::string name = "flat_map",
                     Lending lending = Lending::fresh);

  /// States the time per chunk of "source", or of a host stage added before, for estimate() and
  /// the virtual clock, under which its body otherwise takes no time. Errors: invalid_argument if
  /// no stage has that name.
  Pipeline& takes(std::string_view stage, Seconds seconds);
  Pipeline& takes(std::string_view stage, double seconds);

  /// Runs until the source has ended and all chunks have passed.
  PipelineStats run();
  /// The next result, as completed or in the source's order; empty at the end. The run starts with
  /// the first call and continues between calls.
  std::optional<Chunk> next(bool in_order = true);
  /// Ends the run early: the source isn't called again, and work that hasn't started is dropped.
  void stop();

  /// The least time of a run over chunks like these, whose content flat_maps alone read, before it
  /// starts; these are called, with what kernels write unspecified.
  /// `seconds` per chunk: the source's first, then one per stage in order; 0: the time given to
  /// takes(). Those of kernels count if their cost is unknown. Errors: unavailable naming a kernel
  /// without either, or a flat_map that throws, or makes more than a million chunks of one.
  /// Without chunks: over all those of an IndexedSource. It reads the smallest and the largest;
  /// what others ask for is on the line between these, by their sizes. Not with a flat_map.
  PipelineEstimate estimate(std::span<const Chunk> chunks = {},
                            std::span<const double> seconds = {});

  void set_order(Order order);  ///< Also during a run, from any thread.
  PipelineStats stats() const;  ///< Also during a run, from any thread.
  std::vector<ChunkFailure> failures() const;
  /// A result of all chunks, after the run, in the pipeline's memory. Errors: invalid_argument if
  /// no result has that name, or the run hasn't succeeded.
  View reduced(std::string_view name) const;
  Engine& engine() const;

 private:
  Pipeline& library(Codelet codelet, std::initializer_list<FieldUses> uses);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quadriga
