// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_array_place.cpp: exports of arrays, and who gives them back.
#include "py_array_place.h"

#include <nanobind/nanobind.h>
#include <quadriga/error.h>

#include <array>
#include <cmath>
#include <cstring>
#include <exception>

#include "base/thread.h"
#include "gil_gate.h"
#include "message/ports.h"
#include "py_devices.h"

namespace quadriga::python {
namespace {

using message::ElementType;
using message::Layout;
using message::MessageBuffer;
using message::Patience;

std::optional<ElementType> type_of(const char* format, Py_ssize_t item) {
  if (format == nullptr) return ElementType::uint8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  const bool is_complex = *format == 'Z';
  if (is_complex) ++format;
  if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
  if (is_complex) {
    if (*format == 'f') return ElementType::complex64;
    return *format == 'd' ? std::optional(ElementType::complex128) : std::nullopt;
  }
  constexpr std::array integers{ElementType::int8, ElementType::int16, ElementType::int32,
                                ElementType::int64};
  constexpr std::array naturals{ElementType::uint8, ElementType::uint16, ElementType::uint32,
                                ElementType::uint64};
  const std::size_t width = item == 1 ? 0 : item == 2 ? 1 : item == 4 ? 2 : 3;
  if (std::strchr("bhilq", *format)) return integers[width];
  if (std::strchr("BHILQ", *format)) return naturals[width];
  switch (*format) {
    case '?':
      return ElementType::boolean;
    case 'e':
      return ElementType::float16;
    case 'f':
      return ElementType::float32;
    case 'd':
      return ElementType::float64;
    default:
      return std::nullopt;
  }
}

}  // namespace

Export::~Export() {
  if (view_.obj == nullptr) return;
  const GilHere gil;
  if (gil) PyBuffer_Release(&view_);
}

bool Export::open(PyObject* array, bool writes) {
  const int flags = writes ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
  if (PyObject_GetBuffer(array, &view_, flags) == 0) return true;
  PyErr_Clear();
  view_.obj = nullptr;
  return false;
}

std::optional<MessageBuffer> Export::place() const {
  const auto type = type_of(view_.format, view_.itemsize);
  if (!type || static_cast<std::size_t>(view_.itemsize) != message::size_of(*type))
    return std::nullopt;
  auto* const data = static_cast<std::byte*>(view_.buf);
  if (PyBuffer_IsContiguous(&view_, 'C'))
    return MessageBuffer{message::contiguous_layout(view_.len / view_.itemsize, *type), data};
  const auto rank = static_cast<std::size_t>(view_.ndim);
  std::vector<std::int64_t> shape(view_.shape, view_.shape + rank);
  std::vector<std::int64_t> strides(view_.strides, view_.strides + rank);
  return MessageBuffer{Layout::view(shape, strides, *type), data};
}

namespace {

// Truncation of a mapped file is told. An array that owns its memory, as most do, isn't mapped.
void watch_mapped(nb::handle array) {
  nb::object keeper = nb::borrow(array);
  do {
    nb::object next = nb::getattr(keeper, "base", nb::handle());
    if (!next.is_valid() || next.is(keeper)) break;
    if (next.is_none()) return;
    keeper = std::move(next);
  } while (keeper.type().is(array.type()));
  if (PyByteArray_Check(keeper.ptr()) || PyBytes_Check(keeper.ptr())) return;
  nb::module_::import_("quadriga.mapped").attr("watch")(array);
}

// The memory of a port, or of a CUDA device.
void put_on_device(MessageBuffer& place, nb::handle port) {
  if (!port.is_none()) place.port = nb::cast<PyDevices&>(port).port;
  const GilReleased released;
  if (!place.port) place.port = message::ports::cuda_at(place.data);
  place.device = place.port->memory().holder(place.data);
  require(place.device != no_device, "the array's memory isn't these devices'");
}

}  // namespace

ArrayPlace::ArrayPlace(nb::handle array, nb::handle layout, bool writes, nb::handle given) {
  watch_mapped(array);
  if (given.is_none() && layout.is_none() && exported.open(array.ptr(), writes)) {
    if (auto found = exported.place()) {
      place = std::move(*found);
      return;
    }
  }
  const nb::object described = nb::module_::import_("quadriga.message.places")
                                   .attr("described")(array, layout, writes, given);
  place.data = reinterpret_cast<std::byte*>(nb::cast<std::uintptr_t>(described[0]));
  place.layout = nb::cast<Layout>(described[1]);
  kept = nb::object(described[2]);
  if (nb::len(described) <= 3 || place.layout.bytes() == 0) return;
  put_on_device(place, described[3]);
  if (described[4].is_none()) return;
  stream = nb::cast<std::uintptr_t>(described[4]);
  using message::StreamSide;
  const GilReleased released;
  order = std::make_shared<message::StreamOrder>(
      place.port, place.device, *stream,
      given.is_none() ? StreamSide::before : StreamSide::before_and_after);
}

ArrayPlace::~ArrayPlace() {
  if (!kept.is_valid()) return;
  const GilHere gil;
  if (gil)
    kept.reset();
  else
    static_cast<void>(kept.release());
}

namespace {

// The last to hold it may be the thread that moves messages, which mustn't wait for the GIL: one
// that Python doesn't know leaves it to a thread of its own.
void let_go(ArrayPlace* place) noexcept {
  if (Py_IsInitialized() != 0 && PyGILState_GetThisThreadState() == nullptr) {
    try {
      start_thread("quadriga freer", [place] { delete place; }).detach();
      return;
    } catch (const std::exception&) {
      // It waits, then.
    }
  }
  delete place;
}

void check_signals() {
  const GilHere gil;
  if (gil && PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

std::shared_ptr<void> ArrayPlace::keep() const {
  if (!place.on_device()) return nullptr;
  auto* const held = new ArrayPlace;
  held->kept = kept;
  return {held, let_go};
}

std::shared_ptr<ArrayPlace> shared_place(nb::handle array, nb::handle layout, bool writes,
                                         nb::handle stream) {
  return {new ArrayPlace(array, layout, writes, stream), let_go};
}

Patience patience_of(double seconds) {
  require(!std::isnan(seconds), "deadline isn't a number");
  return {seconds, check_signals};
}

}  // namespace quadriga::python
