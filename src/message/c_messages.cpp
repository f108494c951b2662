// SPDX-License-Identifier: BSD-3-Clause
// src/message/c_messages.cpp: message_c.h on the communicator for C++.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/message.h>
#include <quadriga/message_c.h>
#include <quadriga/message_collectives.h>

#include <array>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "message/c_messages.h"
#include "message/layout/layout.h"

namespace quadriga::message {
namespace {

Layout elements(const void* data, std::int64_t count, const quadriga_layout* of) {
  require(of != nullptr, "the layout is NULL");
  require(count >= 0, fmt::format("the number of elements is {}; expected 0 or more", count));
  require(data != nullptr || count == 0, "the address is NULL");
  const Layout& layout = of->layout;
  if (count == 1) return layout;
  const auto size = static_cast<std::int64_t>(size_of(layout.elements().type()));
  const bool is_element = layout.count() == 1 && layout.extent() == size && layout.lower() == 0 &&
                          layout.bounds().first == 0;
  return is_element ? contiguous_layout(count, layout.elements().type())
                    : Layout::contiguous(count, layout);
}

}  // namespace

SendBuffer sent(const void* data, std::int64_t count, const quadriga_layout* of) {
  return {data, elements(data, count, of)};
}

ReceiveBuffer received(void* data, std::int64_t count, const quadriga_layout* of) {
  return {data, elements(data, count, of)};
}

ReduceRule known(quadriga_operation operation) {
  const int number = static_cast<int>(operation) & ~QUADRIGA_REPRODUCIBLE;
  require(number >= 0 && number < reduce_operations,
          fmt::format("operation {}; expected 0 to {}, and QUADRIGA_REPRODUCIBLE or not", number,
                      reduce_operations - 1));
  ReduceRule by(static_cast<ReduceOperation>(number));
  by.reproducible = (static_cast<int>(operation) & QUADRIGA_REPRODUCIBLE) != 0;
  return by;
}

}  // namespace quadriga::message

using quadriga::c_failed;
using quadriga::require;
using quadriga::message::CallKind;
using quadriga::message::Communicator;
using quadriga::message::ElementType;
using quadriga::message::ExchangePlan;
using quadriga::message::guarded;
using quadriga::message::known;
using quadriga::message::Layout;
using quadriga::message::opened;
using quadriga::message::ReceiveBuffer;
using quadriga::message::received;
using quadriga::message::ReduceOperation;
using quadriga::message::Request;
using quadriga::message::Seconds;
using quadriga::message::SendBuffer;
using quadriga::message::sent;
using quadriga::message::started;
using quadriga::message::Status;
namespace message = quadriga::message;

namespace {

/// A collective. `prepare` makes of its arguments what is called then: arguments that are wrong
/// here alone raise on all ranks.
template <class Prepare>
std::int64_t collective(const quadriga_communicator* comm, message::CallKind kind,
                        const Prepare& prepare) noexcept {
  using Run = decltype(prepare(std::declval<const Communicator&>()));
  return guarded([&] {
    const Communicator& ranks = opened(comm);
    std::optional<Run> run;
    try {
      run.emplace(prepare(ranks));
    } catch (const quadriga::Error& error) {
      Communicator::Common& common = ranks.common();
      common.core.refuse(kind, error.what(), common.patience({}));
      throw;
    }
    (*run)();
  });
}

void tell(quadriga_status* status, const Status& found) {
  if (status != nullptr)
    *status = {found.source, found.tag, static_cast<std::int64_t>(found.bytes)};
}

Seconds seconds_of(double deadline) { return deadline < 0 ? Seconds() : Seconds(deadline); }

/// Runs `make`, whose result `into` points to afterwards.
template <class T, class Make>
std::int64_t made(T** into, const Make& make) noexcept {
  if (into == nullptr) return c_failed(QUADRIGA_INVALID, "the pointer to the result is NULL");
  *into = nullptr;
  return guarded([&] { *into = new T{make()}; });
}

const Layout& one(const quadriga_layout* of) {
  require(of != nullptr, "the layout is NULL");
  return of->layout;
}

std::span<const std::int64_t> numbers(const std::int64_t* first, std::int64_t count) {
  require(count >= 0 && (first != nullptr || count == 0),
          fmt::format("an array of {} numbers{}; expected 0 or more, at an address", count,
                      first ? "" : " is NULL"));
  return {first, static_cast<std::size_t>(count)};
}

// A part for each rank; nothing on ranks where it doesn't count.
std::int64_t of_all(const Communicator& comm, std::int64_t count, bool counts = true) {
  require(count >= 0 && count <= std::numeric_limits<std::int64_t>::max() / comm.size(),
          fmt::format(
              "{} elements for each of {} ranks; expected 0 or more, and fewer than 2^63 in all",
              count, comm.size()));
  return counts ? count * comm.size() : 0;
}

std::span<const quadriga_planned> planned(const quadriga_planned* first, std::int64_t count) {
  require(count >= 0 && (first != nullptr || count == 0), "a plan's list of messages is NULL");
  return {first, static_cast<std::size_t>(count)};
}

}  // namespace

std::int64_t quadriga_world(double deadline, quadriga_communicator** comm) {
  return made(comm, [&] { return message::world({60, seconds_of(deadline)}); });
}

std::int64_t quadriga_join(const char* address, int rank, int size, const char* token,
                           double deadline, quadriga_communicator** comm) {
  return made(comm, [&] {
    require(address != nullptr && token != nullptr, "join: the address or the token is NULL");
    return message::join(address, rank, size, token, {60, seconds_of(deadline)});
  });
}

void quadriga_leave(quadriga_communicator* comm) {
  if (comm == nullptr) return;
  if (!comm->is_part) guarded([&] { comm->communicator.close(); });
  guarded([&] { delete comm; });
}

int quadriga_rank(const quadriga_communicator* comm) {
  return comm != nullptr ? comm->communicator.rank() : -1;
}

int quadriga_size(const quadriga_communicator* comm) {
  return comm != nullptr ? comm->communicator.size() : -1;
}

const quadriga_layout* quadriga_element(quadriga_element_type type) {
  static const std::unique_ptr<const quadriga_layout[]> all = [] {
    auto layouts = std::make_unique<quadriga_layout[]>(message::element_types);
    for (int i = 0; i < message::element_types; ++i)
      layouts[static_cast<std::size_t>(i)].layout = Layout(static_cast<ElementType>(i));
    return layouts;
  }();
  const auto index = static_cast<std::size_t>(type);
  return index < message::element_types ? &all[index] : nullptr;
}

std::int64_t quadriga_layout_vector(std::int64_t count, std::int64_t length, std::int64_t stride,
                                    const quadriga_layout* of, quadriga_layout** into) {
  return made(into, [&] { return Layout::vector(count, length, stride, one(of)); });
}

std::int64_t quadriga_layout_subarray(int dimensions, const std::int64_t* shape,
                                      const std::int64_t* part, const std::int64_t* start,
                                      const quadriga_layout* of, quadriga_layout** into) {
  return made(into, [&] {
    return Layout::subarray(numbers(shape, dimensions), numbers(part, dimensions),
                            numbers(start, dimensions), message::StorageOrder::c, one(of));
  });
}

std::int64_t quadriga_layout_indexed(std::int64_t blocks, const std::int64_t* lengths,
                                     const std::int64_t* displacements, const quadriga_layout* of,
                                     quadriga_layout** into) {
  return made(into, [&] {
    return Layout::indexed(numbers(lengths, blocks), numbers(displacements, blocks), one(of));
  });
}

std::int64_t quadriga_layout_resized(const quadriga_layout* of, std::int64_t lower,
                                     std::int64_t extent, quadriga_layout** into) {
  return made(into, [&] { return Layout::resized(one(of), lower, extent); });
}

void quadriga_layout_free(quadriga_layout* layout) { delete layout; }

std::int64_t quadriga_send(quadriga_communicator* comm, const void* data, std::int64_t count,
                           const quadriga_layout* of, int destination, int tag) {
  return guarded([&] { opened(comm).send(sent(data, count, of), destination, tag); });
}

std::int64_t quadriga_recv(quadriga_communicator* comm, void* data, std::int64_t count,
                           const quadriga_layout* of, int source, int tag,
                           quadriga_status* status) {
  return guarded([&] { tell(status, opened(comm).recv(received(data, count, of), source, tag)); });
}

std::int64_t quadriga_isend(quadriga_communicator* comm, const void* data, std::int64_t count,
                            const quadriga_layout* of, int destination, int tag,
                            quadriga_request** request) {
  return made(request, [&] { return opened(comm).isend(sent(data, count, of), destination, tag); });
}

std::int64_t quadriga_irecv(quadriga_communicator* comm, void* data, std::int64_t count,
                            const quadriga_layout* of, int source, int tag,
                            quadriga_request** request) {
  return made(request, [&] { return opened(comm).irecv(received(data, count, of), source, tag); });
}

std::int64_t quadriga_wait(quadriga_request** request, quadriga_status* status) {
  if (request == nullptr || *request == nullptr) return 0;
  const std::int64_t result = guarded([&] { tell(status, (*request)->request.wait()); });
  if (result == QUADRIGA_DEADLINE) return result;
  delete std::exchange(*request, nullptr);
  return result;
}

std::int64_t quadriga_sendrecv(quadriga_communicator* comm, const void* from,
                               std::int64_t send_count, const quadriga_layout* send_of,
                               int destination, int send_tag, void* into,
                               std::int64_t receive_count, const quadriga_layout* receive_of,
                               int source, int receive_tag, quadriga_status* status) {
  return guarded([&] {
    tell(status, opened(comm).sendrecv(sent(from, send_count, send_of), destination,
                                       received(into, receive_count, receive_of), source, send_tag,
                                       receive_tag));
  });
}

std::int64_t quadriga_barrier(quadriga_communicator* comm) {
  return guarded([&] { opened(comm).barrier(); });
}

std::int64_t quadriga_bcast(quadriga_communicator* comm, void* data, std::int64_t count,
                            const quadriga_layout* of, int root) {
  return collective(comm, CallKind::bcast, [&](const Communicator& ranks) {
    return [&, at = received(data, count, of)] { ranks.bcast(at, root); };
  });
}

std::int64_t quadriga_allreduce(quadriga_communicator* comm, const void* from, void* into,
                                std::int64_t count, const quadriga_layout* of,
                                quadriga_operation operation) {
  return collective(comm, CallKind::allreduce, [&](const Communicator& ranks) {
    return [&ranks, out = sent(from, count, of), in = received(into, count, of),
            by = known(operation)] { ranks.allreduce(out, in, by); };
  });
}

std::int64_t quadriga_reduce(quadriga_communicator* comm, const void* from, void* into,
                             std::int64_t count, const quadriga_layout* of,
                             quadriga_operation operation, int root) {
  return collective(comm, CallKind::reduce, [&](const Communicator& ranks) {
    const std::int64_t own = ranks.rank() == root ? count : 0;
    return [&ranks, root, out = sent(from, count, of), in = received(into, own, of),
            by = known(operation)] { ranks.reduce(out, in, by, root); };
  });
}

std::int64_t quadriga_gather(quadriga_communicator* comm, const void* from, void* into,
                             std::int64_t count, const quadriga_layout* of, int root) {
  return collective(comm, CallKind::gather, [&](const Communicator& ranks) {
    const std::int64_t all = of_all(ranks, count, ranks.rank() == root);
    return [&ranks, root, out = sent(from, count, of), in = received(into, all, of)] {
      ranks.gather(out, in, root);
    };
  });
}

std::int64_t quadriga_allgather(quadriga_communicator* comm, const void* from, void* into,
                                std::int64_t count, const quadriga_layout* of) {
  return collective(comm, CallKind::allgather, [&](const Communicator& ranks) {
    return [&ranks, out = sent(from, count, of), in = received(into, of_all(ranks, count), of)] {
      ranks.allgather(out, in);
    };
  });
}

std::int64_t quadriga_scatter(quadriga_communicator* comm, const void* from, void* into,
                              std::int64_t count, const quadriga_layout* of, int root) {
  return collective(comm, CallKind::scatter, [&](const Communicator& ranks) {
    const std::int64_t all = of_all(ranks, count, ranks.rank() == root);
    return [&ranks, root, out = sent(from, all, of), in = received(into, count, of)] {
      ranks.scatter(out, in, root);
    };
  });
}

std::int64_t quadriga_alltoall(quadriga_communicator* comm, const void* from, void* into,
                               std::int64_t count, const quadriga_layout* of) {
  return collective(comm, CallKind::alltoall, [&](const Communicator& ranks) {
    const std::int64_t all = of_all(ranks, count);
    return [&ranks, out = sent(from, all, of), in = received(into, all, of)] {
      ranks.alltoall(out, in);
    };
  });
}

std::int64_t quadriga_ibarrier(quadriga_communicator* comm, quadriga_request** request) {
  return started(comm, CallKind::barrier, request,
                 [](const Communicator& ranks) { return message::ibarrier(ranks); });
}

std::int64_t quadriga_ibcast(quadriga_communicator* comm, void* data, std::int64_t count,
                             const quadriga_layout* of, int root, quadriga_request** request) {
  return started(comm, CallKind::bcast, request, [&](const Communicator& ranks) {
    return message::ibcast(ranks, received(data, count, of), root);
  });
}

std::int64_t quadriga_iallreduce(quadriga_communicator* comm, const void* from, void* into,
                                 std::int64_t count, const quadriga_layout* of,
                                 quadriga_operation operation, quadriga_request** request) {
  return started(comm, CallKind::allreduce, request, [&](const Communicator& ranks) {
    return message::iallreduce(ranks, sent(from, count, of), received(into, count, of),
                               known(operation));
  });
}

std::int64_t quadriga_ireduce(quadriga_communicator* comm, const void* from, void* into,
                              std::int64_t count, const quadriga_layout* of,
                              quadriga_operation operation, int root, quadriga_request** request) {
  return started(comm, CallKind::reduce, request, [&](const Communicator& ranks) {
    const std::int64_t own = ranks.rank() == root ? count : 0;
    return message::ireduce(ranks, sent(from, count, of), received(into, own, of), known(operation),
                            root);
  });
}

std::int64_t quadriga_igather(quadriga_communicator* comm, const void* from, void* into,
                              std::int64_t count, const quadriga_layout* of, int root,
                              quadriga_request** request) {
  return started(comm, CallKind::gather, request, [&](const Communicator& ranks) {
    const std::int64_t all = of_all(ranks, count, ranks.rank() == root);
    return message::igather(ranks, sent(from, count, of), received(into, all, of), root);
  });
}

std::int64_t quadriga_iallgather(quadriga_communicator* comm, const void* from, void* into,
                                 std::int64_t count, const quadriga_layout* of,
                                 quadriga_request** request) {
  return started(comm, CallKind::allgather, request, [&](const Communicator& ranks) {
    return message::iallgather(ranks, sent(from, count, of),
                               received(into, of_all(ranks, count), of));
  });
}

std::int64_t quadriga_iscatter(quadriga_communicator* comm, const void* from, void* into,
                               std::int64_t count, const quadriga_layout* of, int root,
                               quadriga_request** request) {
  return started(comm, CallKind::scatter, request, [&](const Communicator& ranks) {
    const std::int64_t all = of_all(ranks, count, ranks.rank() == root);
    return message::iscatter(ranks, sent(from, all, of), received(into, count, of), root);
  });
}

std::int64_t quadriga_ialltoall(quadriga_communicator* comm, const void* from, void* into,
                                std::int64_t count, const quadriga_layout* of,
                                quadriga_request** request) {
  return started(comm, CallKind::alltoall, request, [&](const Communicator& ranks) {
    const std::int64_t all = of_all(ranks, count);
    return message::ialltoall(ranks, sent(from, all, of), received(into, all, of));
  });
}

std::int64_t quadriga_split(quadriga_communicator* comm, int color, int key,
                            quadriga_communicator** part) {
  if (part == nullptr) return c_failed(QUADRIGA_INVALID, "the pointer to the result is NULL");
  *part = nullptr;
  return guarded([&] {
    if (auto own = opened(comm).Split(color, key))
      *part = new quadriga_communicator{std::move(*own), true};
  });
}

std::int64_t quadriga_plan_make(quadriga_communicator* comm, std::int64_t send_count,
                                const quadriga_planned* sends, std::int64_t receive_count,
                                const quadriga_planned* receives, quadriga_plan** into) {
  return made(into, [&] {
    std::vector<message::PlannedSend> leaving;
    std::vector<message::PlannedReceive> arriving;
    for (const quadriga_planned& each : planned(sends, send_count))
      leaving.push_back({sent(each.data, each.count, each.of), each.rank, each.tag});
    for (const quadriga_planned& each : planned(receives, receive_count))
      arriving.push_back({received(each.data, each.count, each.of), each.rank, each.tag});
    return opened(comm).plan(leaving, arriving);
  });
}

std::int64_t quadriga_plan_start(quadriga_plan* plan) {
  return guarded([&] {
    require(plan != nullptr, "the plan is NULL");
    plan->plan.start();
  });
}

std::int64_t quadriga_plan_wait(quadriga_plan* plan) {
  return guarded([&] {
    require(plan != nullptr, "the plan is NULL");
    plan->plan.wait();
  });
}

void quadriga_plan_free(quadriga_plan* plan) {
  if (plan == nullptr) return;
  guarded([&] { plan->plan.cancel(); });
  delete plan;
}
