// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_collectives.cpp: collectives of communicators.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>
#include <quadriga/error.h>

#include <functional>

#include "py_message.h"

namespace quadriga::python {
namespace {

using message::CallKind;
using message::CommunicatorCore;
using message::MessageBuffer;
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

// A place that doesn't count on this rank.
std::unique_ptr<ArrayPlace> if_any(nb::handle array, nb::handle layout, bool writes) {
  return array.is_none() ? nullptr : std::make_unique<ArrayPlace>(array, layout, writes);
}
const MessageBuffer& place_in(const std::unique_ptr<ArrayPlace>& array) {
  static const MessageBuffer nothing;
  return array ? array->place : nothing;
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

// What a collective takes on this rank; either may be absent.
struct Operands {
  std::unique_ptr<ArrayPlace> from;
  std::unique_ptr<ArrayPlace> into;
  int root = -1;
  ReduceOperation operation = ReduceOperation::sum;
};

ReduceOperation operation_of(nb::handle given) {
  if (!given) return ReduceOperation::sum;
  if (!nb::isinstance<nb::str>(given))
    fail(Errc::invalid_argument,
         "op is " + std::string(nb::repr(given).c_str()) + "; expected the name of an operation");
  return message::reduce_operation_of(nb::cast<std::string>(given));
}

Operands operands(PyCommunicator& self, CallKind kind, double deadline, nb::handle from,
                  nb::handle into, nb::handle root = {}, nb::handle operation = {}) {
  return prepared(self, kind, deadline, [&] {
    return Operands{if_any(from, nb::none(), false), if_any(into, nb::none(), true),
                    root ? whole("root", root) : -1, operation_of(operation)};
  });
}

CallKind kind_named(const std::string& text) {
  for (int i = 0; i <= static_cast<int>(CallKind::neighbor_alltoall); ++i)
    if (message::name(static_cast<CallKind>(i)) == text) return static_cast<CallKind>(i);
  fail(Errc::internal, "no collective " + text);
}

// Arrays for or from ranks, as (rank, array, layout).
struct RankArrays {
  std::vector<std::unique_ptr<ArrayPlace>> arrays;
  std::vector<RankPart> parts;

  RankArrays(nb::handle listed, bool writes) {
    for (const nb::handle each : listed) {
      arrays.push_back(std::make_unique<ArrayPlace>(each[1], each[2], writes));
      parts.push_back({whole("rank", each[0]), arrays.back()->place});
    }
  }
};

void exchange(PyCommunicator& self, const std::string& kind, nb::handle root, nb::handle sent,
              nb::handle received, double deadline) {
  const CallKind call = kind_named(kind);
  int at = -1;
  const auto parts = prepared(self, call, deadline, [&] {
    at = whole("root", root);
    return std::pair(std::make_unique<RankArrays>(sent, false),
                     std::make_unique<RankArrays>(received, true));
  });
  const GilReleased released;
  self.communicator.exchange(call, at, parts.first->parts, parts.second->parts,
                             patience_of(deadline));
}

void reduce_scatter(PyCommunicator& self, nb::handle from, nb::handle into,
                    const std::vector<std::int64_t>& counts, nb::handle operation,
                    bool reproducible, double deadline) {
  const Operands with =
      operands(self, CallKind::reduce_scatter, deadline, from, into, {}, operation);
  const GilReleased released;
  self.communicator.reduce_scatter(place_in(with.from), place_in(with.into), counts, with.operation,
                                   patience_of(deadline), reproducible);
}

void allgatherv(PyCommunicator& self, nb::handle from, nb::handle into, double deadline) {
  const auto parts = prepared(self, CallKind::allgatherv, deadline, [&] {
    return std::pair(std::make_unique<ArrayPlace>(from, nb::none(), false),
                     std::make_unique<RankArrays>(into, true));
  });
  std::vector<MessageBuffer> places;
  for (const RankPart& each : parts.second->parts) places.push_back(each.place);
  const GilReleased released;
  self.communicator.all_gather_parts(parts.first->place, places, patience_of(deadline));
}

// What a collective that was started takes; either place may be absent.
struct StartedOperands {
  std::shared_ptr<ArrayPlace> from, into;
  int root = -1;
  ReduceOperation operation = ReduceOperation::sum;
  bool reproducible = false;
};

void take_part(CommunicatorCore& core, CallKind kind, const StartedOperands& with) {
  static const MessageBuffer nothing;
  const MessageBuffer& from = with.from ? with.from->place : nothing;
  const MessageBuffer& into = with.into ? with.into->place : nothing;
  switch (kind) {
    case CallKind::barrier:
      return core.barrier({});
    case CallKind::bcast:
      return core.broadcast(into, with.root, {});
    case CallKind::reduce:
      return core.reduce(from, into, with.operation, with.root, {}, with.reproducible);
    case CallKind::allreduce:
      return core.all_reduce(from, into, with.operation, {}, with.reproducible);
    case CallKind::gather:
      return core.gather(from, into, with.root, {});
    case CallKind::scatter:
      return core.scatter(from, into, with.root, {});
    case CallKind::allgather:
      return core.all_gather(from, into, {});
    case CallKind::alltoall:
      return core.all_to_all(from, into, {});
    default:
      fail(Errc::internal, "no such collective is started");
  }
}

PyRequest start(PyCommunicator& self, const std::string& name, nb::handle from, nb::handle into,
                nb::handle layout, nb::handle root, nb::handle operation, bool reproducible) {
  const CallKind kind = kind_named(name);
  message::StartedCollectives& started = self.started();
  auto with = made_or_told(
      [&] {
        const auto place = [&](nb::handle array, bool writes) {
          return array.is_none() ? nullptr : shared_place(array, layout, writes);
        };
        const int at = whole("root", root);
        // A root's array is read only.
        const bool writes = kind != CallKind::bcast || self.communicator.rank() != at;
        return StartedOperands{place(from, false), place(into, writes), at, operation_of(operation),
                               reproducible};
      },
      [&](const char* why) { started.refuse(kind, why); });
  return {nullptr, nullptr,
          started.start(kind, [kind, with = std::move(with)](CommunicatorCore& core) {
            take_part(core, kind, with);
          })};
}

void force(PyCommunicator& self, const std::optional<std::string>& algorithm,
           std::int64_t segment) {
  TreeOptions options;
  if (algorithm) options.shapes = {message::tree_shape(*algorithm)};
  options.segment_bytes = segment;
  self.communicator.force(options);
  self.started().force(options);
}

}  // namespace

void bind_collectives(CommunicatorClass& comm) {
  const auto a = [](const char* name) { return nb::arg(name); };
  comm.def(
          "barrier",
          [](PyCommunicator& self, double deadline) {
            const GilReleased released;
            self.communicator.barrier(patience_of(deadline));
          },
          a("deadline"))
      .def(
          "bcast",
          [](PyCommunicator& self, nb::handle array, nb::handle root, nb::handle layout,
             double deadline) {
            int at = -1;
            const auto place = prepared(self, CallKind::bcast, deadline, [&] {
              at = whole("root", root);
              return std::make_unique<ArrayPlace>(array, layout, self.communicator.rank() != at);
            });
            const GilReleased released;
            self.communicator.broadcast(place->place, at, patience_of(deadline));
          },
          a("array").none(), a("root").none(), a("layout").none(), a("deadline"))
      .def(
          "reduce",
          [](PyCommunicator& self, nb::handle from, nb::handle into, nb::handle operation,
             nb::handle root, bool reproducible, double deadline) {
            const Operands with =
                operands(self, CallKind::reduce, deadline, from, into, root, operation);
            const GilReleased released;
            self.communicator.reduce(place_in(with.from), place_in(with.into), with.operation,
                                     with.root, patience_of(deadline), reproducible);
          },
          a("sent"), a("received").none(), a("operation").none(), a("root").none(),
          a("reproducible"), a("deadline"))
      .def(
          "allreduce",
          [](PyCommunicator& self, nb::handle from, nb::handle into, nb::handle operation,
             bool reproducible, double deadline) {
            const Operands with =
                operands(self, CallKind::allreduce, deadline, from, into, {}, operation);
            const GilReleased released;
            self.communicator.all_reduce(place_in(with.from), place_in(with.into), with.operation,
                                         patience_of(deadline), reproducible);
          },
          a("sent"), a("received"), a("operation").none(), a("reproducible"), a("deadline"))
      .def(
          "gather",
          [](PyCommunicator& self, nb::handle from, nb::handle into, nb::handle root,
             double deadline) {
            const Operands with = operands(self, CallKind::gather, deadline, from, into, root);
            const GilReleased released;
            self.communicator.gather(place_in(with.from), place_in(with.into), with.root,
                                     patience_of(deadline));
          },
          a("sent"), a("received").none(), a("root").none(), a("deadline"))
      .def(
          "scatter",
          [](PyCommunicator& self, nb::handle from, nb::handle into, nb::handle root,
             double deadline) {
            const Operands with = operands(self, CallKind::scatter, deadline, from, into, root);
            const GilReleased released;
            self.communicator.scatter(place_in(with.from), place_in(with.into), with.root,
                                      patience_of(deadline));
          },
          a("sent").none(), a("received"), a("root").none(), a("deadline"))
      .def(
          "allgather",
          [](PyCommunicator& self, nb::handle from, nb::handle into, double deadline) {
            const Operands with = operands(self, CallKind::allgather, deadline, from, into);
            const GilReleased released;
            self.communicator.all_gather(place_in(with.from), place_in(with.into),
                                         patience_of(deadline));
          },
          a("sent"), a("received"), a("deadline"))
      .def(
          "alltoall",
          [](PyCommunicator& self, nb::handle from, nb::handle into, double deadline) {
            const Operands with = operands(self, CallKind::alltoall, deadline, from, into);
            const GilReleased released;
            self.communicator.all_to_all(place_in(with.from), place_in(with.into),
                                         patience_of(deadline));
          },
          a("sent"), a("received"), a("deadline"))
      .def(
          "split",
          [](PyCommunicator& self, nb::handle color, nb::handle key, double deadline) {
            std::optional<CommunicatorCore> part;
            const auto wish = prepared(self, CallKind::split, deadline, [&] {
              return std::pair(whole("color", color), whole("key", key));
            });
            {
              const GilReleased released;
              part = self.communicator.split(wish.first, wish.second, patience_of(deadline));
            }
            std::optional<PyCommunicator> made;
            if (part) made.emplace(self.endpoint, std::move(*part));
            return made;
          },
          a("color").none(), a("key").none(), a("deadline"))
      .def("reduce_scatter", reduce_scatter, a("sent"), a("received"), a("counts"),
           a("operation").none(), a("reproducible"), a("deadline"))
      .def("allgatherv", allgatherv, a("sent"), a("received"), a("deadline"))
      .def("exchange", exchange, a("kind"), a("root").none(), a("sent"), a("received"),
           a("deadline"))
      .def("start", start, a("kind"), a("sent").none(), a("received").none(), a("layout").none(),
           a("root").none(), a("operation").none(), a("reproducible"))
      .def("force", force, a("algorithm").none(), a("segment"))
      .def(
          "refuse",
          [](PyCommunicator& self, const std::string& kind, const std::string& why,
             double deadline) { refuse(self, kind_named(kind), why, deadline); },
          a("kind"), a("why"), a("deadline"))
      .def("shrink", [](PyCommunicator& self) {
        const GilReleased released;
        return PyCommunicator(self.endpoint, self.communicator.shrink());
      });
}

}  // namespace quadriga::python
