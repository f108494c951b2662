// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_collectives.cpp: collectives of communicators.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <quadriga/error.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "message/nccl/collectives.h"
#include "py_message.h"

namespace quadriga::python {
namespace {

using message::CallKind;
using message::CommunicatorCore;
using message::MessageBuffer;
using message::Patience;
using message::RankPart;
using message::ReduceOperation;
using message::TreeOptions;

// All ranks raise; what this one raises is said by the caller.
void refuse(PyCommunicator& self, CallKind kind, const std::string& why, double deadline) {
  const GilReleased released;
  try {
    self.communicator.refuse(kind, why, patience_of(deadline));
  } catch (const Error&) {
    // As it must.
  }
}

// Makes what a collective needs. A rank that can't tells the others, who would wait for it.
template <class Make, class Tell>
auto made_or_told(const Make& make, const Tell& tell) {
  try {
    return make();
  } catch (nb::python_error& error) {  // Its what() begins with the traceback.
    tell(nb::str(error.value()).c_str());
    throw;
  } catch (const std::exception& error) {
    tell(error.what());
    throw;
  }
}

template <class Make>
auto prepared(PyCommunicator& self, CallKind kind, double deadline, const Make& make) {
  return made_or_told(make, [&](const char* why) { refuse(self, kind, why, deadline); });
}

ReduceOperation operation_of(nb::handle given) {
  if (!given) return ReduceOperation::sum;
  if (!nb::isinstance<nb::str>(given))
    fail(Errc::invalid_argument,
         "op is " + std::string(nb::repr(given).c_str()) + "; expected the name of an operation");
  return message::reduce_operation_of(nb::cast<std::string>(given));
}

CallKind kind_named(const std::string& text) {
  for (int i = 0; i <= static_cast<int>(CallKind::neighbor_alltoall); ++i)
    if (message::name(static_cast<CallKind>(i)) == text) return static_cast<CallKind>(i);
  fail(Errc::internal, "no collective " + text);
}

// A call's seconds from now on: what its streams take is taken off what is left for the ranks.
Patience patience_from_now(double deadline) {
  Patience patience = patience_of(deadline);
  patience.since = std::chrono::steady_clock::now();
  return patience;
}

// Arrays for or from ranks, as (rank, array, layout).
struct RankArrays {
  std::vector<std::shared_ptr<ArrayPlace>> arrays;
  std::vector<RankPart> parts;

  RankArrays(nb::handle listed, bool writes) {
    for (const nb::handle each : listed) {
      arrays.push_back(shared_place(each[1], each[2], writes));
      parts.push_back({whole("rank", each[0]), arrays.back()->place});
    }
  }
  void await(CommunicatorCore& core, CallKind kind, const Patience& patience) const {
    for (const auto& each : arrays) core.await_stream(each->order, kind, patience);
  }
};

// What ranks give and get in parts of any sizes; of allgatherv the first is one for all.
struct ExchangeArrays {
  int root;  // First: a wrong one is named before the parts that it is the rank of.
  RankArrays sends, receives;

  ExchangeArrays(nb::handle sent, nb::handle received, nb::handle at)
      : root(whole("root", at)), sends(sent, false), receives(received, true) {}
  void run(CommunicatorCore& core, CallKind kind, const Patience& patience) const {
    sends.await(core, kind, patience);
    receives.await(core, kind, patience);
    if (kind != CallKind::allgatherv)
      return core.exchange(kind, root, sends.parts, receives.parts, patience);
    std::vector<MessageBuffer> places;
    for (const RankPart& each : receives.parts) places.push_back(each.place);
    core.all_gather_parts(sends.parts.front().place, places, patience);
  }
};

void exchange(PyCommunicator& self, const std::string& name, nb::handle root, nb::handle sent,
              nb::handle received, double deadline) {
  const CallKind kind = kind_named(name);
  const auto arrays = prepared(
      self, kind, deadline, [&] { return std::make_unique<ExchangeArrays>(sent, received, root); });
  const GilReleased released;
  arrays->run(self.communicator, kind, patience_from_now(deadline));
}

PyRequest start_exchange(PyCommunicator& self, const std::string& name, nb::handle root,
                         nb::handle sent, nb::handle received) {
  const CallKind kind = kind_named(name);
  message::StartedCollectives& started = self.started();
  auto arrays = made_or_told([&] { return std::make_shared<ExchangeArrays>(sent, received, root); },
                             [&](const char* why) { started.refuse(kind, why); });
  return {nullptr, nullptr,
          started.start(kind, [kind, arrays = std::move(arrays)](CommunicatorCore& core) {
            arrays->run(core, kind, {});
          })};
}

bool flag(const char* name, nb::handle given) {
  if (!nb::isinstance<nb::bool_>(given))
    fail(Errc::invalid_argument,
         std::string(name) + " is " + nb::repr(given).c_str() + "; expected True or False");
  return given.ptr() == Py_True;
}

// What a collective takes on this rank; either place may be absent.
struct ArrayPair {
  std::shared_ptr<ArrayPlace> from, into;
  int root = -1;
  ReduceOperation operation = ReduceOperation::sum;
  bool reproducible = false;
  std::vector<std::int64_t> counts{};
};

// The same as Python has it.
struct Given {
  nb::handle from, into, layout, root, operation, reproducible;
  std::vector<std::int64_t> counts{};
};

// Whether this rank gives an array, and whether it gets one.
bool gives(CallKind kind, bool is_root) {
  return kind != CallKind::barrier && kind != CallKind::bcast &&
         (kind != CallKind::scatter || is_root);
}
bool gets(CallKind kind, bool is_root) {
  return kind != CallKind::barrier &&
         ((kind != CallKind::reduce && kind != CallKind::gather) || is_root);
}

ArrayPair operands(CallKind kind, int rank, const Given& given) {
  const int root = whole("root", given.root);
  const bool is_root = rank == root;
  const auto place = [&](const char* name, nb::handle array, bool writes, bool is_needed) {
    if (is_needed && array.is_none())
      fail(Errc::invalid_argument, std::string(message::name(kind)) + ": " + name +
                                       " is None on rank " + std::to_string(rank) +
                                       "; expected an array");
    return array.is_none() ? nullptr : shared_place(array, given.layout, writes);
  };
  const bool is_bcast = kind == CallKind::bcast;  // of which a root's array is only read
  return {place("sendarray", given.from, false, gives(kind, is_root)),
          place(is_bcast ? "array" : "recvarray", given.into, !is_bcast || !is_root,
                gets(kind, is_root)),
          root,
          operation_of(given.operation),
          flag("reproducible", given.reproducible),
          given.counts};
}

void take_part(CommunicatorCore& core, CallKind kind, const ArrayPair& with,
               const Patience& patience) {
  static const MessageBuffer nothing;
  const MessageBuffer& from = with.from ? with.from->place : nothing;
  const MessageBuffer& into = with.into ? with.into->place : nothing;
  for (const auto& each : {with.from, with.into})
    if (each) core.await_stream(each->order, kind, patience);
  switch (kind) {
    case CallKind::barrier:
      return core.barrier(patience);
    case CallKind::bcast:
      return core.broadcast(into, with.root, patience);
    case CallKind::reduce:
      return core.reduce(from, into, with.operation, with.root, patience, with.reproducible);
    case CallKind::allreduce:
      return core.all_reduce(from, into, with.operation, patience, with.reproducible);
    case CallKind::reduce_scatter:
      return core.reduce_scatter(from, into, with.counts, with.operation, patience,
                                 with.reproducible);
    case CallKind::gather:
      return core.gather(from, into, with.root, patience);
    case CallKind::scatter:
      return core.scatter(from, into, with.root, patience);
    case CallKind::allgather:
      return core.all_gather(from, into, patience);
    case CallKind::alltoall:
      return core.all_to_all(from, into, patience);
    default:
      fail(Errc::internal, "not such a collective");
  }
}

void collective(PyCommunicator& self, const std::string& name, nb::handle from, nb::handle into,
                nb::handle layout, nb::handle root, nb::handle operation, nb::handle reproducible,
                const std::vector<std::int64_t>& counts, double deadline) {
  const CallKind kind = kind_named(name);
  const ArrayPair with = prepared(self, kind, deadline, [&] {
    return operands(kind, self.communicator.rank(),
                    {from, into, layout, root, operation, reproducible, counts});
  });
  const GilReleased released;
  take_part(self.communicator, kind, with, patience_from_now(deadline));
}

PyRequest start(PyCommunicator& self, const std::string& name, nb::handle from, nb::handle into,
                nb::handle layout, nb::handle root, nb::handle operation, nb::handle reproducible,
                const std::vector<std::int64_t>& counts) {
  const CallKind kind = kind_named(name);
  message::StartedCollectives& started = self.started();
  auto with = made_or_told(
      [&] {
        return operands(kind, self.communicator.rank(),
                        {from, into, layout, root, operation, reproducible, counts});
      },
      [&](const char* why) { started.refuse(kind, why); });
  return {nullptr, nullptr,
          started.start(kind, [kind, with = std::move(with)](CommunicatorCore& core) {
            take_part(core, kind, with, {});
          })};
}

std::optional<PyCommunicator> split(PyCommunicator& self, nb::handle color, nb::handle key,
                                    double deadline) {
  const auto wish = prepared(self, CallKind::split, deadline,
                             [&] { return std::pair(whole("color", color), whole("key", key)); });
  std::optional<CommunicatorCore> part;
  {
    const GilReleased released;
    part = self.communicator.split(wish.first, wish.second, patience_of(deadline));
  }
  std::optional<PyCommunicator> made;
  if (part) made.emplace(self.endpoint, std::move(*part));
  return made;
}

void force(PyCommunicator& self, const std::optional<std::string>& algorithm,
           std::int64_t segment) {
  TreeOptions options;
  auto by = message::CollectiveBy::chosen;
  if (algorithm == "nccl" || algorithm == "messages")
    by = algorithm == "nccl" ? message::CollectiveBy::nccl : message::CollectiveBy::ours;
  else if (algorithm)
    options.shapes = {message::tree_shape(*algorithm)};
  options.segment_bytes = segment;
  self.communicator.force(options, by);
  self.started().force(options);
}

// Where the last collective's time went, in seconds since it began; None if nobody noted it.
nb::object times(const PyCommunicator& self) {
  const message::CollectiveTimes* const known = self.communicator.times();
  if (!known) return nb::none();
  nb::list steps;
  for (const message::StepTime& each : known->steps)
    steps.append(nb::make_tuple(std::string(message::name(each.kind)), each.peer, each.bytes,
                                each.ready, each.begun, each.queued, each.matched, each.ended));
  return nb::make_tuple(std::string(message::name(known->operation)), known->plan, known->planned,
                        known->agreed, known->packed, known->moved, known->ended, known->by, steps);
}

// Version, file, why it isn't used, and how many collectives it carried out.
nb::object nccl(const PyCommunicator& self) {
  const message::NcclReport found = self.communicator.nccl()->report();
  return nb::make_tuple(found.version, found.library, found.absence, found.collectives);
}

}  // namespace

void bind_collectives(CommunicatorClass& comm) {
  const auto a = [](const char* name) { return nb::arg(name); };
  comm.def("collective", collective, a("kind"), a("sent").none(), a("received").none(),
           a("layout").none(), a("root").none(), a("operation").none(), a("reproducible").none(),
           a("counts"), a("deadline"))
      .def("split", split, a("color").none(), a("key").none(), a("deadline"))
      .def("exchange", exchange, a("kind"), a("root").none(), a("sent"), a("received"),
           a("deadline"))
      .def("start", start, a("kind"), a("sent").none(), a("received").none(), a("layout").none(),
           a("root").none(), a("operation").none(), a("reproducible").none(), a("counts"))
      .def("start_exchange", start_exchange, a("kind"), a("root").none(), a("sent"), a("received"))
      .def("force", force, a("algorithm").none(), a("segment"))
      .def(
          "note_times", [](PyCommunicator& self, bool on) { self.communicator.note_times(on); },
          a("on"))
      .def("times", times)
      .def("nccl", nccl)
      .def(
          "refuse",
          [](PyCommunicator& self, const std::string& kind, const std::string& why,
             double deadline) { refuse(self, kind_named(kind), why, deadline); },
          a("kind"), a("why"), a("deadline"))
      .def(
          "refuse_started",
          [](PyCommunicator& self, const std::string& kind, const std::string& why) {
            self.started().refuse(kind_named(kind), why);
          },
          a("kind"), a("why"))
      .def("shrink", [](PyCommunicator& self) {
        const GilReleased released;
        return PyCommunicator(self.endpoint, self.communicator.shrink());
      });
}

}  // namespace quadriga::python
