// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_message.h: communicators and arrays as places of messages, for the files that bind
// them.
//
// Invariants
//   1. No call enters the library with the GIL: its lock is never waited for by who holds the GIL.
//   2. An array that a message uses is exported (Py_buffer) until the message has ended: nobody can
//      resize it or free it. The export is given back with the GIL, or not at all once Python ends.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "bindings.h"
#include "blocking.h"
#include "gil_gate.h"
#include "message/communicator.h"

namespace quadriga::python {

// An exported array. Needs the GIL from its making to its end, where it isn't empty.
class Export {
 public:
  Export() = default;
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;
  ~Export() {
    if (view_.obj == nullptr) return;
    const GilHere gil;
    if (gil) PyBuffer_Release(&view_);
  }
  bool open(PyObject* array, bool writes) {
    const int flags = writes ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
    if (PyObject_GetBuffer(array, &view_, flags) == 0) return true;
    PyErr_Clear();
    view_.obj = nullptr;
    return false;
  }
  // Nothing if its elements have no type of one letter.
  std::optional<message::MessageBuffer> place() const;

 private:
  Py_buffer view_{};
};

// An array's place, and what keeps the array as it is. An array that the buffer protocol doesn't
// describe, or that goes with a layout, is described in Python.
struct ArrayPlace {
  ArrayPlace(nb::handle array, nb::handle layout, bool writes);
  ~ArrayPlace();
  ArrayPlace(const ArrayPlace&) = delete;
  ArrayPlace& operator=(const ArrayPlace&) = delete;

  Export exported;
  nb::object kept;
  message::MessageBuffer place;
};

/// A place that lives as long as a message may use it.
std::shared_ptr<ArrayPlace> shared_place(nb::handle array, nb::handle layout, bool writes);
/// So many seconds; signals of Python end the wait.
message::Patience patience_of(double seconds);

struct PyRequest {
  std::shared_ptr<message::Endpoint> endpoint;
  message::TransferPtr transfer;
};

struct PyCommunicator {
  std::shared_ptr<message::Endpoint> endpoint;  // Outlives the communicator.
  message::CommunicatorCore communicator;

  explicit PyCommunicator(std::shared_ptr<message::Endpoint> made)
      : endpoint(std::move(made)), communicator(endpoint) {}
  explicit PyCommunicator(std::shared_ptr<message::Endpoint> of, message::CommunicatorCore part)
      : endpoint(std::move(of)), communicator(std::move(part)) {}

  void send(nb::handle array, int destination, int tag, nb::handle layout, double deadline) {
    const ArrayPlace from(array, layout, false);
    const GilReleased released;
    communicator.send(from.place, destination, tag, patience_of(deadline));
  }
  message::MessageStatus recv(nb::handle array, int source, int tag, nb::handle layout,
                              double deadline) {
    const ArrayPlace into(array, layout, true);
    const GilReleased released;
    return communicator.receive(into.place, source, tag, patience_of(deadline));
  }
  PyRequest isend(nb::handle array, int destination, int tag, nb::handle layout) {
    const auto from = shared_place(array, layout, false);
    const GilReleased released;
    return {endpoint, communicator.start_send(from->place, destination, tag, from)};
  }
  PyRequest irecv(nb::handle array, int source, int tag, nb::handle layout) {
    const auto into = shared_place(array, layout, true);
    const GilReleased released;
    return {endpoint, communicator.start_receive(into->place, source, tag, into)};
  }
  message::MessageStatus sendrecv(nb::handle sent, int destination, int send_tag,
                                  nb::handle received, int source, int receive_tag,
                                  nb::handle send_layout, nb::handle receive_layout,
                                  double deadline) {
    const ArrayPlace from(sent, send_layout, false), into(received, receive_layout, true);
    const GilReleased released;
    return communicator.send_receive(from.place, destination, send_tag, into.place, source,
                                     receive_tag, patience_of(deadline));
  }
  std::optional<message::MessageStatus> probe(int source, int tag, bool waits, double deadline) {
    const GilReleased released;
    std::optional<message::Patience> patience;
    if (waits) patience = patience_of(deadline);
    return communicator.probe(source, tag, patience);
  }
  std::string close(double seconds) {
    const GilReleased released;
    return endpoint->close(patience_of(seconds));
  }
};

using CommunicatorClass = nb::class_<PyCommunicator>;
void bind_collectives(CommunicatorClass& comm);

}  // namespace quadriga::python
