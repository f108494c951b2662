// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_array_place.h: arrays as places of messages, kept as they are meanwhile.
//
// Invariants
//   1. An array that a message uses is exported (Py_buffer) until the message has ended: nobody can
//      resize it or free it. The export is given back with the GIL, or not at all once Python ends.
#pragma once

#include <memory>
#include <optional>

#include "bindings.h"
#include "message/posting.h"
#include "message/stream_order.h"

namespace quadriga::python {

/// An exported array. Needs the GIL from its making to its end, where it isn't empty.
class Export {
 public:
  Export() = default;
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;
  ~Export();
  /// False if the array has no such buffer.
  bool open(PyObject* array, bool writes);
  /// Nothing if its elements have no type of one letter.
  std::optional<message::MessageBuffer> place() const;

 private:
  Py_buffer view_{};
};

/// An array's place, and what keeps the array as it is. An array that the buffer protocol doesn't
/// describe, or that goes with a layout, is described in Python. What is queued on the stream of an
/// array in a device's memory comes before the message; with another `stream`, None by default,
/// what that holds does, and what it gets later comes after a receive. Nothing is waited for.
struct ArrayPlace {
  ArrayPlace(nb::handle array, nb::handle layout, bool writes, nb::handle stream = nb::none());
  ~ArrayPlace();
  ArrayPlace(const ArrayPlace&) = delete;
  ArrayPlace& operator=(const ArrayPlace&) = delete;

  Export exported;
  nb::object kept;
  message::MessageBuffer place;
  std::optional<std::uintptr_t> stream;         ///< Nothing of the host, and of no bytes.
  std::shared_ptr<message::StreamOrder> order;  ///< Null without a stream.

  /// Keeps an array of a device beyond this object; null for one of the host. With the GIL.
  std::shared_ptr<void> keep() const;

 private:
  ArrayPlace() = default;
};

/// One that any thread may let go, also one without the GIL.
std::shared_ptr<ArrayPlace> shared_place(nb::handle array, nb::handle layout, bool writes,
                                         nb::handle stream = nb::none());

/// Seconds, negative ones without end, interrupted by Python's signals.
/// Errors: invalid_argument if it isn't a number.
message::Patience patience_of(double seconds);

}  // namespace quadriga::python
