// SPDX-License-Identifier: BSD-3-Clause
// src/message/message.cpp: the public communicator, on the library's own.
#include <fmt/format.h>
#include <quadriga/message.h>

#include <chrono>
#include <utility>

#include "base/config.h"
#include "message/buffer_place.h"
#include "message/communicator_common.h"
#include "message/join.h"
#include "message/start.h"

namespace quadriga::message {
namespace {

// In a collective, which raises on all ranks if it fails here. Its streams and itself share the
// patience.
template <class Common, class Buffer>
MessageBuffer ready_place_of(const Buffer& buffer, CallKind kind, Common& common,
                             const Patience& patience) {
  OrderedPlace found;
  try {
    found = ordered_place_of(buffer);
  } catch (const Error& error) {
    common.core.refuse(kind, error.what(), patience);
    throw;
  }
  common.core.await_stream(found.before, kind, patience);
  return found.place;
}

template <class Common>
std::pair<MessageBuffer, MessageBuffer> ready_places_of(const SendBuffer& from,
                                                        const ReceiveBuffer& into, CallKind kind,
                                                        Common& common, const Patience& patience) {
  MessageBuffer out = ready_place_of(from, kind, common, patience);
  return {std::move(out), ready_place_of(into, kind, common, patience)};
}

Communicator communicator_of(std::shared_ptr<Endpoint> endpoint, Seconds deadline) {
  const double seconds = patience_for(deadline).seconds;
  CommunicatorCore core(endpoint);
  return Communicator(
      std::make_shared<Communicator::Common>(std::move(endpoint), std::move(core), seconds));
}

}  // namespace

SendBuffer::SendBuffer(const void* data, std::int64_t count, ElementType type)
    : layout_(contiguous_layout(count, type)), data_(data) {}

ReceiveBuffer::ReceiveBuffer(void* data, std::int64_t count, ElementType type)
    : layout_(contiguous_layout(count, type)), data_(data) {}

Status Request::wait(Seconds deadline) const {
  return wait_since(std::chrono::steady_clock::now(), deadline);
}

Status Request::wait_since(std::chrono::steady_clock::time_point begin, Seconds deadline) const {
  Patience patience = patience_for(deadline, deadline_);
  patience.since = begin;
  if (transfer_) return endpoint_->wait(transfer_, patience);
  if (collective_) collective_->wait(patience);
  return {};
}

bool Request::test() const {
  return collective_ ? collective_->test() : !transfer_ || endpoint_->test(transfer_);
}

bool Request::cancel() const { return transfer_ && endpoint_->cancel(transfer_); }

std::vector<Status> waitall(std::span<const Request> requests, Seconds deadline) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Status> all;
  for (const Request& each : requests) all.push_back(each.wait_since(begin, deadline));
  return all;
}

void ExchangePlan::start() const {
  if (transfers_) transfers_->start();
}

void ExchangePlan::wait(Seconds deadline) const {
  if (transfers_) transfers_->wait(patience_for(deadline, deadline_));
}

bool ExchangePlan::test() const { return !transfers_ || transfers_->test(); }
bool ExchangePlan::cancel() const { return transfers_ && transfers_->cancel(); }

std::vector<Status> ExchangePlan::received() const {
  return transfers_ ? transfers_->received() : std::vector<Status>();
}

int Communicator::rank() const noexcept { return state_->core.rank(); }
int Communicator::size() const noexcept { return state_->core.size(); }
Seconds Communicator::deadline() const noexcept {
  const double seconds = state_->deadline.load();
  return seconds < 0 ? Seconds() : Seconds(seconds);
}
void Communicator::set_deadline(Seconds seconds) const {
  state_->deadline = patience_for(seconds).seconds;
}

void Communicator::send(const SendBuffer& from, int destination, int tag, Seconds deadline) const {
  state_->core.send(place_of(from), destination, tag, state_->patience(deadline), order_of(from));
}

Status Communicator::recv(const ReceiveBuffer& into, int source, int tag, Seconds deadline) const {
  return state_->core.receive(place_of(into), source, tag, state_->patience(deadline),
                              order_of(into));
}

Request Communicator::isend(const SendBuffer& from, int destination, int tag) const {
  return state_->request(
      state_->core.start_send(place_of(from), destination, tag, {}, order_of(from)));
}

Request Communicator::irecv(const ReceiveBuffer& into, int source, int tag) const {
  return state_->request(
      state_->core.start_receive(place_of(into), source, tag, {}, order_of(into)));
}

Status Communicator::sendrecv(const SendBuffer& from, int destination, const ReceiveBuffer& into,
                              int source, int send_tag, int receive_tag, Seconds deadline) const {
  return state_->core.send_receive(place_of(from), destination, send_tag, place_of(into), source,
                                   receive_tag, state_->patience(deadline), order_of(from),
                                   order_of(into));
}

Status Communicator::probe(int source, int tag, Seconds deadline) const {
  return *state_->core.probe(source, tag, state_->patience(deadline));
}

std::optional<Status> Communicator::iprobe(int source, int tag) const {
  return state_->core.probe(source, tag, std::nullopt);
}

std::vector<PredictedPath> Communicator::predict(const SendBuffer& from, int destination) const {
  return predict(from, destination, from);
}

std::vector<PredictedPath> Communicator::predict(const SendBuffer& from, int destination,
                                                 const SendBuffer& into) const {
  return state_->core.predict(place_of(from), destination, place_of(into));
}

ExchangePlan Communicator::plan(std::span<const PlannedSend> sends,
                                std::span<const PlannedReceive> receives) const {
  std::vector<PlannedMessage> leaving, arriving;
  for (const PlannedSend& each : sends)
    leaving.push_back({place_of(each.from), each.destination, each.tag, each.from.memory().stream});
  for (const PlannedReceive& each : receives)
    arriving.push_back({place_of(each.into), each.source, each.tag, each.into.memory().stream});
  ExchangePlan made;
  made.transfers_ = std::make_shared<const ExchangeTransfers>(state_->core.plan(leaving, arriving));
  made.deadline_ = state_->deadline.load();
  return made;
}

void Communicator::barrier(Seconds deadline) const {
  state_->core.barrier(state_->patience(deadline));
}

void Communicator::bcast(const ReceiveBuffer& elements, int root, Seconds deadline) const {
  const Patience patience = state_->patience_from_now(deadline);
  state_->core.broadcast(ready_place_of(elements, CallKind::bcast, *state_, patience), root,
                         patience);
}

void Communicator::reduce(const SendBuffer& from, const ReceiveBuffer& into, ReduceRule by,
                          int root, Seconds deadline) const {
  const Patience patience = state_->patience_from_now(deadline);
  const auto [out, in] = ready_places_of(from, into, CallKind::reduce, *state_, patience);
  state_->core.reduce(out, in, by.operation, root, patience, by.reproducible);
}

void Communicator::allreduce(const SendBuffer& from, const ReceiveBuffer& into, ReduceRule by,
                             Seconds deadline) const {
  const Patience patience = state_->patience_from_now(deadline);
  const auto [out, in] = ready_places_of(from, into, CallKind::allreduce, *state_, patience);
  state_->core.all_reduce(out, in, by.operation, patience, by.reproducible);
}

void Communicator::gather(const SendBuffer& from, const ReceiveBuffer& into, int root,
                          Seconds deadline) const {
  const Patience patience = state_->patience_from_now(deadline);
  const auto [out, in] = ready_places_of(from, into, CallKind::gather, *state_, patience);
  state_->core.gather(out, in, root, patience);
}

void Communicator::allgather(const SendBuffer& from, const ReceiveBuffer& into,
                             Seconds deadline) const {
  const Patience patience = state_->patience_from_now(deadline);
  const auto [out, in] = ready_places_of(from, into, CallKind::allgather, *state_, patience);
  state_->core.all_gather(out, in, patience);
}

void Communicator::scatter(const SendBuffer& from, const ReceiveBuffer& into, int root,
                           Seconds deadline) const {
  const Patience patience = state_->patience_from_now(deadline);
  const auto [out, in] = ready_places_of(from, into, CallKind::scatter, *state_, patience);
  state_->core.scatter(out, in, root, patience);
}

void Communicator::alltoall(const SendBuffer& from, const ReceiveBuffer& into,
                            Seconds deadline) const {
  const Patience patience = state_->patience_from_now(deadline);
  const auto [out, in] = ready_places_of(from, into, CallKind::alltoall, *state_, patience);
  state_->core.all_to_all(out, in, patience);
}

std::optional<Communicator> Communicator::Split(int color, int key, Seconds deadline) const {
  auto part = state_->core.split(color, key, state_->patience(deadline));
  if (!part) return std::nullopt;
  return Communicator(
      std::make_shared<Common>(state_->endpoint, std::move(*part), state_->deadline.load()));
}

Communicator Communicator::shrink() const {
  return Communicator(
      std::make_shared<Common>(state_->endpoint, state_->core.shrink(), state_->deadline.load()));
}

std::string Communicator::close(double seconds) const {
  return state_->endpoint->close(patience_for(seconds));
}

Communicator world(const StartOptions& options) {
  return communicator_of(join_world(launch_variables(), patience_for(options.patience)),
                         options.deadline);
}

Communicator join(const std::string& address, int rank, int size, std::string_view token,
                  const StartOptions& options) {
  return communicator_of(message::join(Joining{address, rank, size, parse_token(token)},
                                       patience_for(options.patience)),
                         options.deadline);
}

std::vector<Communicator> local(int ranks, Seconds deadline) {
  require(ranks >= 1 && ranks <= most_ranks,
          fmt::format("local: {} ranks; expected 1 to {}", ranks, most_ranks));
  std::vector<Communicator> all;
  for (auto& each : local_endpoints(ranks))
    all.push_back(communicator_of(std::move(each), deadline));
  return all;
}

}  // namespace quadriga::message
