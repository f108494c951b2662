// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_message.h: communicators and requests, for the files that bind them.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/message_lane.h"
#include "gil_gate.h"
#include "message/communicator.h"
#include "message/started_collectives.h"
#include "py_array_place.h"
#include "py_message_tasks.h"
#include "whole.h"

namespace quadriga::python {

namespace nb = nanobind;

/// A message, or a collective without the first two.
struct PyRequest {
  std::shared_ptr<message::Endpoint> endpoint;
  message::TransferPtr transfer;
  std::shared_ptr<message::StartedCollective> collective;
};

struct PyCommunicator {
  std::shared_ptr<message::Endpoint> endpoint;  // Outlives the communicator.
  message::CommunicatorCore communicator;
  std::shared_ptr<MessageLane> lane;  // Null until tasks use it.
  std::shared_ptr<message::StartedCollectives> started_collectives;

  explicit PyCommunicator(std::shared_ptr<message::Endpoint> made)
      : endpoint(std::move(made)), communicator(endpoint) {}
  explicit PyCommunicator(std::shared_ptr<message::Endpoint> of, message::CommunicatorCore part)
      : endpoint(std::move(of)), communicator(std::move(part)) {}

  void send(nb::handle array, nb::handle dest, nb::handle tag, nb::handle layout, double deadline,
            nb::handle stream) {
    const int to = whole("dest", dest), with = whole("tag", tag);
    const ArrayPlace from(array, layout, false, stream);
    auto keep = from.keep();
    const GilReleased released;
    communicator.send(from.place, to, with, patience_of(deadline), from.order, std::move(keep));
  }
  message::MessageStatus recv(nb::handle array, nb::handle source, nb::handle tag,
                              nb::handle layout, double deadline, nb::handle stream) {
    const int from = whole("source", source), with = whole("tag", tag);
    // The array is kept until its stream has written it, which may be later than this call's end.
    if (!stream.is_none())
      return waited(irecv(array, source, tag, layout, stream), patience_of(deadline));
    const ArrayPlace into(array, layout, true);
    const GilReleased released;
    return communicator.receive(into.place, from, with, patience_of(deadline), into.order);
  }
  PyRequest isend(nb::handle array, nb::handle dest, nb::handle tag, nb::handle layout,
                  nb::handle stream) {
    const int to = whole("dest", dest), with = whole("tag", tag);
    const auto from = shared_place(array, layout, false, stream);
    const GilReleased released;
    return {endpoint, communicator.start_send(from->place, to, with, from, from->order), {}};
  }
  PyRequest irecv(nb::handle array, nb::handle source, nb::handle tag, nb::handle layout,
                  nb::handle stream) {
    const int from = whole("source", source), with = whole("tag", tag);
    const auto into = shared_place(array, layout, true, stream);
    const GilReleased released;
    return {endpoint, communicator.start_receive(into->place, from, with, into, into->order), {}};
  }
  /// Its paths: name, seconds or nothing, whether it is chosen, why.
  using Path = std::tuple<std::string, std::optional<double>, bool, std::string>;
  std::vector<Path> predict(nb::handle array, nb::handle dest, nb::handle layout, nb::handle into) {
    const int to = whole("dest", dest);
    const ArrayPlace from(array, layout, false);
    std::optional<ArrayPlace> there;
    if (!into.is_none()) there.emplace(into, nb::none(), false);
    std::vector<Path> paths;
    const GilReleased released;
    for (const auto& each : communicator.predict(from.place, to, there ? there->place : from.place))
      paths.emplace_back(each.name, each.seconds, each.is_chosen, each.why);
    return paths;
  }
  message::MessageStatus sendrecv(nb::handle sent, nb::handle dest, nb::handle send_tag,
                                  nb::handle received, nb::handle source, nb::handle receive_tag,
                                  nb::handle send_layout, nb::handle receive_layout,
                                  double deadline, nb::handle stream) {
    const int to = whole("dest", dest), by = whole("source", source);
    const int sent_with = whole("sendtag", send_tag), got_with = whole("recvtag", receive_tag);
    const ArrayPlace from(sent, send_layout, false, stream);
    auto keep = from.keep();
    if (!stream.is_none()) {
      message::Patience patience = patience_of(deadline);
      patience.since = std::chrono::steady_clock::now();
      const PyRequest arriving = irecv(received, source, receive_tag, receive_layout, stream);
      try {
        const GilReleased released;
        communicator.send(from.place, to, sent_with, patience, from.order, std::move(keep));
      } catch (...) {
        withdraw(arriving);
        throw;
      }
      return waited(arriving, patience);
    }
    const ArrayPlace into(received, receive_layout, true);
    const GilReleased released;
    return communicator.send_receive(from.place, to, sent_with, into.place, by, got_with,
                                     patience_of(deadline), from.order, into.order,
                                     std::move(keep));
  }
  std::optional<message::MessageStatus> probe(nb::handle source, nb::handle tag, bool waits,
                                              double deadline) {
    const int from = whole("source", source), with = whole("tag", tag);
    const GilReleased released;
    std::optional<message::Patience> patience;
    if (waits) patience = patience_of(deadline);
    return communicator.probe(from, with, patience);
  }
  /// Of each rank of this communicator: path in, path out, its allocations that were opened.
  std::vector<std::tuple<std::string, std::string, std::uint64_t>> paths() {
    const GilReleased released;
    std::vector<std::tuple<std::string, std::string, std::uint64_t>> all;
    for (const int rank : communicator.group().world) {
      const auto pair = endpoint->pair(rank);
      all.emplace_back(message::text_of(pair.in), message::text_of(pair.out), pair.opened);
    }
    return all;
  }
  /// Its end waits for its thread: without the GIL.
  message::StartedCollectives& started() {
    if (started_collectives) return *started_collectives;
    started_collectives = {new message::StartedCollectives(communicator), [](auto* made) {
                             std::optional<GilReleased> released;
                             if (Py_IsInitialized() != 0 && PyGILState_Check() != 0)
                               released.emplace();
                             delete made;
                           }};
    return *started_collectives;
  }
  std::string close(double seconds) {
    const GilReleased released;
    return endpoint->close(patience_of(seconds));
  }

 private:
  // Waits, or leaves nothing behind.
  message::MessageStatus waited(const PyRequest& request, const message::Patience& patience) {
    try {
      const GilReleased released;
      return endpoint->wait(request.transfer, patience);
    } catch (...) {
      withdraw(request);
      throw;
    }
  }
  void withdraw(const PyRequest& request) {
    const GilReleased released;
    endpoint->withdraw(request.transfer);
  }
};

using CommunicatorClass = nb::class_<PyCommunicator>;
void bind_collectives(CommunicatorClass& comm);

}  // namespace quadriga::python
