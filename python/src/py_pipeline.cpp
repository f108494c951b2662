// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_pipeline.cpp: a run of a pipeline whose source, bodies and kernels are Python's;
// quadriga.pipeline wraps it.
//
// The front (quadriga.pipeline.front) is called with the GIL held, by threads of the engine and by
// whoever drives the run. A chunk's context is the front's own object for it, which keeps its
// arrays; the memory of fields is theirs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "body.h"
#include "pipeline/chunk_size.h"
#include "pipeline/flow.h"
#include "pipeline/stream_estimate.h"
#include "py_codelet.h"
#include "py_engine.h"

namespace quadriga::python {
namespace {

/// Name, address, rows, columns, leading dimension, type.
using FieldTuple =
    std::tuple<std::string, std::uintptr_t, std::int64_t, std::int64_t, std::int64_t, DType>;
/// Name, mode, whether it is temporary, a constant's field or none, whether it is a result of all
/// chunks.
using UseTuple = std::tuple<std::string, Access, bool, nb::object, bool>;

/// By number of the chunk.
using Sizes = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<double> values_of(const nb::object& sizes) {
  const auto array = nb::cast<Sizes>(sizes);
  return {array.data(), array.data() + array.size()};
}

View field_view(const FieldTuple& field) {
  return {reinterpret_cast<void*>(std::get<1>(field)), std::get<2>(field), std::get<3>(field),
          std::get<4>(field), std::get<5>(field)};
}

/// Holds a Python object for owners that don't know Python.
std::shared_ptr<void> held(nb::object object) {
  return {object.release().ptr(), [](void* kept) {
            const GilHere gil;
            if (gil) Py_DECREF(static_cast<PyObject*>(kept));
          }};
}

nb::handle context_of(const Chunk& chunk) { return static_cast<PyObject*>(chunk.context.get()); }

void lend_all(Chunk& chunk, const nb::object& fields) {
  while (!chunk.fields().empty()) chunk.erase(std::string(chunk.fields().front().name));
  for (const nb::handle each : fields) {
    const auto field = nb::cast<FieldTuple>(each);
    chunk.lend(std::get<0>(field), field_view(field));
  }
}

/// Calls `work` with the GIL held; what Python raises is a BodyFailure, and kept by the front.
template <class Work>
auto with_gil(const Chunk& chunk, Work work) {
  const auto number = static_cast<long long>(chunk.number());
  const InsideBody inside(number);
  try {
    return work();
  } catch (nb::python_error& error) {
    throw BodyFailure(number, describe(error));
  }
}

nb::tuple parts_of(const ChunkId& id) {
  nb::list parts;
  for (const std::uint32_t part : id.parts) parts.append(part);
  return nb::tuple(parts);
}

/// What the front says of a new chunk: its object, fields, bytes that no kernel uses, and stages or
/// None. None: there is no chunk.
bool fill(Chunk& chunk, const nb::object& found) {
  if (found.is_none()) return false;
  chunk.context = held(nb::borrow(found[0]));
  lend_all(chunk, nb::borrow(found[1]));
  chunk.context_bytes = nb::cast<std::size_t>(nb::object(found[2]));
  const nb::object stages = nb::borrow(found[3]);
  if (!stages.is_none()) chunk.stages = nb::cast<std::vector<std::string>>(stages);
  return true;
}

bool ask(const nb::handle& front, Chunk& chunk) {
  return with_gil(chunk, [&] { return fill(chunk, front.attr("next")(chunk.number())); });
}

/// The front's iterator over what becomes of a chunk, asked part by part.
Pipeline::Source split(const nb::handle& front, std::size_t stage, Chunk& chunk) {
  std::shared_ptr<void> parts =
      with_gil(chunk, [&] { return held(front.attr("split")(stage, context_of(chunk))); });
  return [front, parts](Chunk& part) {
    return with_gil(part, [&] {
      const nb::handle iterator = static_cast<PyObject*>(parts.get());
      return fill(part, front.attr("part")(iterator, part.number(), parts_of(part.id())));
    });
  };
}

/// Whether the chunk goes on.
bool call_body(const nb::handle& front, std::size_t stage, Chunk& chunk) {
  return with_gil(chunk, [&] {
    const nb::object answer = front.attr("call")(stage, context_of(chunk));
    const nb::object fields = nb::borrow(answer[1]);
    if (!fields.is_none()) lend_all(chunk, fields);
    return nb::cast<bool>(nb::object(answer[0]));
  });
}

/// A task's parameters; the chunk's object keeps its record.
std::vector<std::byte> bytes_of_record(const nb::object& record) {
  const BodyParams params = params_of(record_of(record));
  const auto bytes = std::as_bytes(std::span(&params, 1));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> params_for(const nb::handle& front, std::size_t stage, const Chunk& chunk) {
  return with_gil(chunk,
                  [&] { return bytes_of_record(front.attr("record")(stage, context_of(chunk))); });
}

FieldShape shape_for(const nb::handle& front, const std::string& name, const Chunk& chunk) {
  return with_gil(chunk, [&] {
    const auto [rows, cols, dtype] = nb::cast<std::tuple<std::int64_t, std::int64_t, DType>>(
        front.attr("temporary")(context_of(chunk), name));
    return FieldShape{rows, cols, dtype};
  });
}

/// The parts of a result of all chunks are the front's to begin and to combine.
void make_reduction(FieldUse& use, nb::handle front) {
  const auto address = [](const View& view) { return reinterpret_cast<std::uintptr_t>(view.data); };
  StreamReduction made;
  made.init = [=, name = use.name](const View& part) {
    with_gil(Chunk(), [&] { front.attr("begin_part")(name, address(part)); });
  };
  made.combine = [=, name = use.name](const View& into, const View& part) {
    with_gil(Chunk(), [&] { front.attr("combine")(name, address(into), address(part)); });
  };
  use.reduction = std::make_shared<const StreamReduction>(std::move(made));
  use.shape = [front, name = use.name](const Chunk& chunk) {
    return with_gil(chunk, [&] {
      const auto [rows, cols, dtype] = nb::cast<std::tuple<std::int64_t, std::int64_t, DType>>(
          front.attr("part_shape")(context_of(chunk), name));
      return FieldShape{rows, cols, dtype};
    });
  };
}

FieldUses uses_of(nb::handle front, const nb::object& given) {
  FieldUses uses;
  for (const nb::handle each : given) {
    const auto [name, access, is_temporary, constant, is_reduced] = nb::cast<UseTuple>(each);
    FieldUse use{name, access};
    use.is_temporary = is_temporary;
    if (is_temporary)
      use.shape = [front, name = name](const Chunk& chunk) {
        return shape_for(front, name, chunk);
      };
    if (is_reduced) make_reduction(use, front);
    if (!constant.is_none()) use.constant = field_view(nb::cast<FieldTuple>(constant));
    uses.push_back(std::move(use));
  }
  return uses;
}

/// Name, whether its bytes are bounded, and the codelet that fills it.
ReturnedField returned_of(nb::handle front, std::size_t stage, std::size_t index,
                          const nb::object& given) {
  ReturnedField made;
  made.name = nb::cast<std::string>(nb::object(given[0]));
  if (nb::cast<bool>(nb::object(given[1])))
    made.most = [front, stage, index](const Chunk& chunk) {
      return with_gil(chunk, [&] {
        return nb::cast<std::size_t>(front.attr("most")(stage, index, context_of(chunk)));
      });
    };
  made.fill = &nb::cast<PyCodelet&>(nb::object(given[2])).codelet;
  made.take = [front, stage, index, name = made.name](Chunk& chunk, bool on_host, bool temporary) {
    return with_gil(chunk, [&] {
      chunk.erase(name);
      const View view = field_view(nb::cast<FieldTuple>(
          front.attr("returned")(stage, index, context_of(chunk), on_host, temporary)));
      if (!temporary) chunk.lend(name, view);
      return view;
    });
  };
  made.fill_params = [front, stage, index](const Chunk& chunk) {
    return with_gil(chunk, [&] {
      return bytes_of_record(front.attr("fill")(stage, index, context_of(chunk)));
    });
  };
  made.filled = [front](const Chunk& chunk) {
    with_gil(chunk, [&] { front.attr("filled")(context_of(chunk)); });
  };
  return made;
}

/// What the front says that a stage takes; -1 is the source.
Pipeline::Seconds seconds_of(nb::handle front, int stage) {
  return [front, stage](const Chunk& chunk) {
    return with_gil(
        chunk, [&] { return nb::cast<double>(front.attr("seconds")(stage, context_of(chunk))); });
  };
}

/// Kind, name, codelet or None, uses, bytes of what a flat_map makes, whether seconds are stated,
/// what a kernel returns.
Stage stage_of(nb::handle front, std::size_t index, const nb::handle& given) {
  Stage stage;
  const nb::object parts = nb::borrow(given);
  const auto kind = nb::cast<std::string>(parts[0]);
  stage.name = nb::cast<std::string>(parts[1]);
  if (kind == "kernel") {
    stage.kind = StageKind::kernel;
    stage.codelet = &nb::cast<PyCodelet&>(nb::object(parts[2])).codelet;
    stage.uses = uses_of(front, nb::object(parts[3]));
    stage.params = [front, index](const Chunk& chunk) { return params_for(front, index, chunk); };
    for (const nb::handle each : nb::object(parts[6]))
      stage.returns.push_back(returned_of(front, index, stage.returns.size(), nb::borrow(each)));
    return stage;
  }
  if (nb::cast<bool>(nb::object(parts[5])))
    stage.seconds = seconds_of(front, static_cast<int>(index));
  if (kind == "flat_map") {
    stage.kind = StageKind::flat_map;
    stage.most_bytes = nb::cast<std::size_t>(nb::object(parts[4]));
    stage.split = [front, index](Chunk& chunk) { return split(front, index, chunk); };
    return stage;
  }
  stage.kind = kind == "serial"            ? StageKind::serial
               : kind == "serial_in_order" ? StageKind::serial_in_order
                                           : StageKind::parallel;
  stage.body = [front, index](Chunk& chunk) { return call_body(front, index, chunk); };
  return stage;
}

using Told = nb::typed<nb::dict, nb::str, nb::any>;
using NextTuple = nb::typed<nb::tuple, bool, nb::any>;

/// A run, and what it needs until it has ended: the engine and the front.
class PyFlow {
 public:
  PyFlow(std::shared_ptr<EngineState> state, nb::object front, const nb::object& stages,
         const FlowOptions& options)
      : state_(std::move(state)), kept_(std::make_shared<Keep>()) {
    const nb::handle handle = front;
    kept_->add(std::move(front));
    std::vector<Stage> made;
    for (const nb::handle each : stages) made.push_back(stage_of(handle, made.size(), each));
    const GilReleased released;
    flow_ = std::make_unique<Flow>(
        state_->engine(), std::move(made), [handle](Chunk& chunk) { return ask(handle, chunk); },
        options);
  }
  PyFlow(PyFlow&&) = default;
  PyFlow& operator=(PyFlow&&) = delete;
  /// What runs ends behind: a source may wait for long.
  ~PyFlow() {
    if (!flow_) return;
    flow_->stop();
    run_behind([state = std::move(state_), kept = std::move(kept_),
                flow = std::shared_ptr<Flow>(std::move(flow_))]() mutable {
      flow.reset();
      state.reset();
      kept.reset();
    });
  }

  /// Returns to Python after `seconds`, for signals and progress; true once the run has ended. The
  /// caller's thread calls nothing of Python's meanwhile, where a signal would be lost.
  bool run(double seconds) {
    const GilReleased released;
    return flow_->run_behind(seconds);
  }
  /// (whether it is the end or a chunk came, its context or None)
  std::pair<bool, nb::object> next(bool in_order, double seconds) {
    bool is_late = false;
    std::optional<Chunk> chunk;
    {
      const GilReleased released;
      chunk = flow_->next(in_order, seconds, is_late);
    }
    if (!chunk) return {!is_late, nb::none()};
    return {true, nb::borrow(context_of(*chunk))};
  }
  void stop() { flow_->stop(); }
  /// Waits until what began has ended, the source excepted; false if it hasn't within some seconds.
  bool drain(double seconds) {
    const GilReleased released;
    return flow_->drain(seconds);
  }
  Flow& flow() { return *flow_; }

 private:
  std::shared_ptr<EngineState> state_;
  std::shared_ptr<Keep> kept_;
  std::unique_ptr<Flow> flow_;
};

PyFlow make_flow(PyEngine& engine, nb::object front, const nb::object& stages, int order,
                 bool skips, bool misses, std::size_t memory, std::size_t host_memory,
                 int look_ahead, int most_on_device, int most_on_link, int most_in_all, int threads,
                 bool takes, const nb::object& sizes) {
  FlowOptions options;
  if (takes) options.source_seconds = seconds_of(front, -1);
  options.order = static_cast<Order>(order);
  options.on_error = skips ? OnError::skip : OnError::raise;
  options.on_full = misses ? OnFull::drop : OnFull::wait;
  options.memory_bytes = memory;
  const auto state = engine.state();
  options.host_bytes = host_memory > 0 ? host_memory : state->engine().options().host_memory / 2;
  options.look_ahead = look_ahead;
  options.most_on_device = most_on_device;
  options.most_on_link = most_on_link;
  options.most_in_all = most_in_all;
  options.threads = threads;
  if (!sizes.is_none())
    options.sizes = std::make_shared<const std::vector<double>>(values_of(sizes));
  return {state, std::move(front), stages, options};
}

Told stats_of(PyFlow& self) {
  PipelineStats stats;
  {
    const GilReleased released;
    stats = self.flow().stats();
  }
  nb::list stages;
  for (const StageStats& each : stats.stages) {
    nb::dict stage;
    stage["name"] = each.name;
    stage["kind"] = each.kind;
    stage["chunks"] = each.chunks;
    stage["busy_seconds"] = each.busy_seconds;
    stage["waiting_seconds"] = each.waiting_seconds;
    stage["acquire_seconds"] = each.acquire_seconds;
    stage["reserve_seconds"] = each.reserve_seconds;
    stage["occupancy"] = each.occupancy;
    stage["queue"] = each.queue;
    stage["mean_queue"] = each.mean_queue;
    stage["chunks_per_second"] = each.chunks_per_second;
    stage["latency_median"] = each.latency_median;
    stage["latency_99"] = each.latency_99;
    stages.append(stage);
  }
  Told told;
  told["stages"] = stages;
  told["chunks"] = stats.chunks;
  told["ended"] = stats.ended;
  told["failed"] = stats.failed;
  told["dropped"] = stats.dropped;
  told["missed"] = stats.missed;
  told["repeated"] = stats.repeated;
  told["seconds"] = stats.seconds;
  told["bound_seconds"] = stats.bound_seconds;
  told["limit"] = stats.limit;
  told["latency_median"] = stats.latency_median;
  told["latency_99"] = stats.latency_99;
  told["most_host_bytes"] = stats.most_host_bytes;
  told["by_device"] = nb::cast(stats.by_device);
  told["most_on_device"] = stats.most_on_device;
  return told;
}

/// (chunk, its parts, stage, message) of each.
nb::typed<nb::list, nb::any> failures_of(PyFlow& self) {
  nb::typed<nb::list, nb::any> found;
  for (const ChunkFailure& each : self.flow().failures()) {
    std::string message = "unknown";
    try {
      std::rethrow_exception(each.error);
    } catch (const std::exception& error) {
      message = error.what();
    } catch (...) {
      message = "it threw no std::exception";
    }
    found.append(nb::make_tuple(each.chunk.number, parts_of(each.chunk), each.stage, message));
  }
  return found;
}

/// (name, address) of each result of all chunks.
nb::typed<nb::list, nb::any> reduced_of(PyFlow& self) {
  nb::typed<nb::list, nb::any> found;
  for (const auto& [name, view] : self.flow().reduced())
    found.append(nb::make_tuple(name, reinterpret_cast<std::uintptr_t>(view.data)));
  return found;
}

Told estimate(PyEngine& engine, nb::object front, const nb::object& stages, int threads, bool takes,
              const nb::object& chunks, const std::vector<double>& seconds,
              const nb::object& of_all) {
  FlowOptions options;
  options.threads = threads;
  if (takes) options.source_seconds = seconds_of(front, -1);
  std::vector<Chunk> like;
  for (const nb::handle each : chunks) {
    Chunk& chunk = like.emplace_back(like.size());
    fill(chunk, nb::borrow(each));
  }
  std::vector<Stage> made;
  for (const nb::handle each : stages) made.push_back(stage_of(front, made.size(), each));
  for (Stage& stage : made) stage.params = nullptr;  // costs of Python's codelets are constants
  const std::vector<double> sizes = of_all.is_none() ? std::vector<double>() : values_of(of_all);
  const auto state = engine.state();
  PipelineEstimate found;
  {
    const GilReleased released;
    found = estimate_stream(state->engine().machine(), StagePlan(std::move(made)), options, like,
                            seconds, sizes);
  }
  Told told;
  told["seconds"] = found.seconds;
  told["limit"] = found.limit;
  told["without_limit"] = found.without_limit;
  told["one_device_more"] = found.one_device_more;
  told["shares"] = nb::cast(found.shares);
  return told;
}

/// Rows of each chunk of an array, by what chunks of one and of two rows need.
std::int64_t choose(PyEngine& engine, nb::object front, const nb::object& stages,
                    std::size_t memory, std::size_t host_memory, int most_on_device, int threads,
                    const nb::object& shown, std::int64_t rows) {
  FlowOptions options;
  const auto state = engine.state();
  options.memory_bytes = memory;
  options.host_bytes = host_memory > 0 ? host_memory : state->engine().options().host_memory / 2;
  options.most_on_device = most_on_device;
  options.threads = threads;
  Chunk one(0);
  Chunk two(1);
  fill(one, nb::borrow(shown[0]));
  fill(two, nb::borrow(shown[1]));
  std::vector<Stage> made;
  for (const nb::handle each : stages) made.push_back(stage_of(front, made.size(), each));
  for (Stage& stage : made) stage.params = nullptr;  // costs of Python's codelets are constants
  const GilReleased released;
  return choose_rows(state->engine().machine(), StagePlan(std::move(made)), options, one, two,
                     rows);
}

}  // namespace

void bind_pipeline(nb::module_& module) {
  module.def("estimate_pipeline", estimate, nb::arg("engine"), nb::arg("front"), nb::arg("stages"),
             nb::arg("threads"), nb::arg("takes"), nb::arg("chunks"), nb::arg("seconds"),
             nb::arg("sizes").none());
  module.def("choose_rows", choose, nb::arg("engine"), nb::arg("front"), nb::arg("stages"),
             nb::arg("memory"), nb::arg("host_memory"), nb::arg("most_on_device"),
             nb::arg("threads"), nb::arg("shown"), nb::arg("rows"));
  nb::class_<PyFlow>(module, "Flow", "A run of a pipeline.")
      .def(nb::new_(&make_flow), nb::arg("engine"), nb::arg("front"), nb::arg("stages"),
           nb::arg("order"), nb::arg("skips"), nb::arg("misses"), nb::arg("memory"),
           nb::arg("host_memory"), nb::arg("look_ahead"), nb::arg("most_on_device"),
           nb::arg("most_on_link"), nb::arg("most_in_all"), nb::arg("threads"), nb::arg("takes"),
           nb::arg("sizes").none())
      .def("run", &PyFlow::run, nb::arg("seconds"))
      .def(
          "next",
          [](PyFlow& self, bool in_order, double seconds) -> NextTuple {
            const auto [is_known, context] = self.next(in_order, seconds);
            return nb::borrow<NextTuple>(nb::make_tuple(is_known, context));
          },
          nb::arg("in_order"), nb::arg("seconds"))
      .def("stop", &PyFlow::stop)
      .def("drain", &PyFlow::drain, nb::arg("seconds"))
      .def(
          "set_order",
          [](PyFlow& self, int order) { self.flow().set_order(static_cast<Order>(order)); },
          nb::arg("order"))
      .def("reduced", reduced_of)
      .def("stats", stats_of)
      .def("failures", failures_of);
}

}  // namespace quadriga::python
