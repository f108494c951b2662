// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/pipeline.h: streams: chunks through stages on the host and on all devices.
#pragma once

#include <quadriga/chunk.h>
#include <quadriga/codelet.h>
#include <quadriga/engine.h>
#include <quadriga/pipeline_stats.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quadriga {

/// Which of the chunks that wait goes to a device next.
enum class Order : std::uint8_t {
  adaptive,  ///< Two small ones a device, then the largest first, small ones last.
  largest,
  first_come,
  smallest,
};

/// How many chunks a stage on the host takes at once.
enum class StageMode : std::uint8_t {
  parallel,         ///< Several.
  serial,           ///< One.
  serial_in_order,  ///< One, as the source gave them.
};

/// What becomes of a run when a stage fails.
enum class OnError : std::uint8_t {
  stop,  ///< The chunks before the one that failed arrive, then the failure is raised.
  skip,  ///< The chunk is dropped, its failure is counted and kept, the others go on.
};

/// How a pipeline is made. Empty and zero mean: the default.
struct PipelineOptions {
  std::string memory = {};       ///< Of each device, as "4GiB"; default: all that tiles may fill.
  std::string host_memory = {};  ///< For chunks on their way; default: half of the engine's.
  std::string devices = {};      ///< As EngineOptions::devices, for an engine of its own.
  Engine* engine = nullptr;      ///< Instead of one of its own; must outlive the pipeline.
  Order order = Order::adaptive;
  OnError on_error = OnError::stop;
  int look_ahead = 64;  ///< Most chunks read that have not got to a device or a result.
  /// The limit L: chunks of a device, in copies or kernels; default: one coming, one in its kernels
  /// and one leaving, of the host a core's each and one more.
  int most_on_device = 0;
  int most_on_link = 0;  ///< The limit G: copies on a link at once; default: as many as fill it.
  int most_in_all = 0;   ///< The limit M: chunks on all devices.
  int threads = 0;       ///< Most bodies of parallel stages at once; default: the usable cores.
};

/// Rows, columns and type of a field that a kernel writes.
struct FieldShape {
  std::int64_t rows = 0;
  std::int64_t cols = 1;
  DType dtype = DType::float64;
};

/// How what chunks add up on several devices becomes one result.
struct StreamReduction {
  /// Sets a part to the neutral element; empty: to zeros.
  std::function<void(const View& part)> init = {};
  std::function<void(const View& into, const View& part)> combine;  ///< On the host, at the end.
};

/// One field of a chunk as a kernel's operand, or data that all chunks share.
struct FieldUse {
  std::string name;
  Access access = Access::read;
  std::function<FieldShape(const Chunk& chunk)> shape = {};  ///< Of a field that is new.
  View constant = {};         ///< Shared by all chunks, read only, kept on the devices.
  bool is_temporary = false;  ///< Lives on the device, for kernels in a row.
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
/// A field that the kernel writes whole; `shape` is asked when the chunk arrives.
FieldUses writes(std::string name, std::function<FieldShape(const Chunk&)> shape);
/// The same for a field that later kernels of the same row update or read, and nobody else.
FieldUses temporary(std::string name, std::function<FieldShape(const Chunk&)> shape);
FieldUses constant(std::string name, const View& value);
/// A result that the kernel updates for each chunk, in a part of its device's own; the parts come
/// home and are combined once, at the end, in the order of devices: Pipeline::reduced().
FieldUses reduces(std::string name, std::function<FieldShape(const Chunk&)> shape,
                  StreamReduction reduction);

/// A stream of chunks through stages. Stages are named in their order; then run() or next().
///
/// Errors:  a stage's failure is raised as task_failed, naming stage and chunk, with what the stage
///          threw nested in it (std::rethrow_if_nested); too_large if a chunk can't pass.
class Pipeline {
 public:
  /// Fills a chunk; false: there are no more. Asked by one thread at a time, when there is room.
  using Source = std::function<bool(Chunk& chunk)>;
  using Body = std::function<void(Chunk& chunk)>;
  /// Whether a chunk goes on.
  using Predicate = std::function<bool(Chunk& chunk)>;
  /// A source of what is made of a chunk, which lives until all of that has ended.
  using Split = std::function<Source(Chunk& chunk)>;
  using Seconds = std::function<double(const Chunk& chunk)>;
  /// The bytes that a kernel gets as its parameters, by chunk.
  using Params = std::function<std::vector<std::byte>(const Chunk& chunk)>;

  explicit Pipeline(PipelineOptions options = {});
  ~Pipeline();  ///< Stops a run: what has begun ends, the rest is dropped.
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) = delete;

  Pipeline& source(Source next);
  /// Operands in the order of `uses`; kernels in a row run where the chunk is, without a copy.
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
  /// On the host: of several chunks at once; of one at a time; of one at a time as the source
  /// gave them.
  Pipeline& parallel(Body body, std::string name = "parallel");
  Pipeline& serial(Body body, std::string name = "serial");
  Pipeline& serial_in_order(Body body, std::string name = "serial_in_order");

  /// Chunks that aren't kept end here, as if the source had not given them.
  Pipeline& filter(Predicate keep, std::string name = "filter",
                   StageMode mode = StageMode::parallel);
  /// Several chunks, or none, instead of one. `memory`, as "64MiB": the most bytes that these have
  /// on their way; the stage waits for room, so that a chunk may become any number. Default: an
  /// equal share of half of host_memory. Chunks are split in the order of the source.
  Pipeline& flat_map(Split split, std::string memory = {}, std::string name = "flat_map");

  /// States what "source", or a stage on the host added before, takes for a chunk: for estimate()
  /// and for the virtual clock, where its body takes no time. Errors: invalid_argument if there is
  /// none of that name.
  Pipeline& takes(std::string_view stage, Seconds seconds);
  Pipeline& takes(std::string_view stage, double seconds);

  /// Runs until the source has ended and all chunks have passed.
  PipelineStats run();
  /// The next result, as they complete or as the source gave them; nothing at the end. The run
  /// begins with the first call and goes on between calls.
  std::optional<Chunk> next(bool in_order = true);
  /// Ends the run early: the source isn't asked again, what hasn't begun is dropped.
  void stop();

  /// The least time of a run over chunks like these, whose content isn't looked at, before it
  /// begins. `seconds` a chunk are stated: the source's first, then one a stage in order; 0: as
  /// takes() says. Those of kernels count where their cost is unknown. Errors: unavailable naming a
  /// kernel without either, or a flat_map, whose chunks nobody knows before.
  PipelineEstimate estimate(std::span<const Chunk> chunks, std::span<const double> seconds = {});

  void set_order(Order order);  ///< Also while it runs, by any thread.
  PipelineStats stats() const;  ///< Also while it runs, by any thread.
  std::vector<ChunkFailure> failures() const;
  /// A result of all chunks, after the run; memory is the pipeline's. Errors: invalid_argument if
  /// there is none of that name, or the run hasn't ended well.
  View reduced(std::string_view name) const;
  Engine& engine() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quadriga
