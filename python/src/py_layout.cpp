// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_layout.cpp: layouts of messages, their encoding, packing and unpacking.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <quadriga/error.h>

#include "bindings.h"
#include "gil_gate.h"
#include "message/layout/code.h"
#include "message/layout/layout.h"
#include "message/pack/stream.h"

namespace quadriga::python {
namespace {

using message::BlockCyclic;
using message::ElementSignature;
using message::ElementType;
using message::Half;
using message::Layout;
using message::StorageOrder;
using Numbers = std::vector<std::int64_t>;
using Packed = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ReadBytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

StorageOrder order_of(bool fortran) { return fortran ? StorageOrder::fortran : StorageOrder::c; }

Layout element(std::string_view name) {
  for (int i = 0; i < message::element_types; ++i) {
    const auto type = static_cast<ElementType>(i);
    if (message::name(type) == name) return type;
  }
  fail(Errc::invalid_argument, "layout: no element type '" + std::string(name) + "'");
}

// The address that the layout's offsets count from; who calls has checked what it reaches.
std::size_t pack(const Layout& layout, std::uintptr_t address, std::size_t offset, Packed into) {
  const std::span<std::byte> segment(reinterpret_cast<std::byte*>(into.data()), into.size());
  const GilReleased released;
  return message::Packer(layout, reinterpret_cast<const void*>(address)).pack(offset, segment);
}

void unpack(const Layout& layout, std::uintptr_t address, std::size_t offset, ReadBytes from,
            const std::string& operation) {
  const std::span segment(reinterpret_cast<const std::byte*>(from.data()), from.size());
  const GilReleased released;
  auto* const data = reinterpret_cast<void*>(address);
  if (operation.empty()) return message::Unpacker(layout, data).unpack(offset, segment);
  const auto combine =
      combine_of(message::reduce_operation_of(operation), layout.elements().type());
  message::Unpacker(layout, data, combine).unpack(offset, segment);
}

std::tuple<nb::bytes, std::uint64_t, std::uint64_t> encoded(const Layout& layout) {
  const std::vector<std::byte> bytes = message::encoded(layout);
  const ElementSignature period = layout.elements().period();
  return {nb::bytes(bytes.data(), bytes.size()), period.count(), period.hash()};
}

// What was pickled, which may be anything; the code doesn't say what the elements repeat.
Layout decoded(const nb::bytes& given, std::uint64_t period, std::uint64_t hash) {
  const auto* const at = reinterpret_cast<const std::byte*>(given.c_str());
  const Layout layout = message::decoded(std::span(at, given.size()));
  const ElementSignature& elements = layout.elements();
  if (elements.uniform()) return layout;
  const ElementSignature part(period, hash, false, elements.type());
  const ElementSignature whole =
      period > 0 ? part.repeated(elements.count() / period) : ElementSignature();
  require(whole == elements, "layout: its elements don't repeat what the pickle says");
  return Layout::from_parts(layout.form(), whole, layout.lower(), layout.extent());
}

void bind_makers(nb::class_<Layout>& layout) {
  layout.def_static("element", element, nb::arg("name"))
      .def_static("contiguous", &Layout::contiguous, nb::arg("count"), nb::arg("of"))
      .def_static("vector", &Layout::vector, nb::arg("count"), nb::arg("length"), nb::arg("stride"),
                  nb::arg("of"))
      .def_static("vector_bytes", &Layout::vector_bytes, nb::arg("count"), nb::arg("length"),
                  nb::arg("stride_bytes"), nb::arg("of"))
      .def_static("resized", &Layout::resized, nb::arg("of"), nb::arg("lower"), nb::arg("extent"))
      .def_static(
          "subarray",
          [](const Numbers& shape, const Numbers& part, const Numbers& start, bool fortran,
             const Layout& of) {
            return Layout::subarray(shape, part, start, order_of(fortran), of);
          },
          nb::arg("shape"), nb::arg("part"), nb::arg("start"), nb::arg("fortran"), nb::arg("of"))
      .def_static(
          "indexed",
          [](const Numbers& lengths, const Numbers& displacements, bool in_bytes,
             const Layout& of) {
            return in_bytes ? Layout::indexed_bytes(lengths, displacements, of)
                            : Layout::indexed(lengths, displacements, of);
          },
          nb::arg("lengths"), nb::arg("displacements"), nb::arg("in_bytes"), nb::arg("of"))
      .def_static(
          "structure",
          [](const Numbers& lengths, const Numbers& displacements,
             const std::vector<Layout>& fields) {
            return Layout::structure(lengths, displacements, fields);
          },
          nb::arg("lengths"), nb::arg("displacements"), nb::arg("fields"))
      .def_static(
          "block_cyclic",
          [](Numbers shape, Numbers block, Numbers processes, Numbers coordinates, bool fortran,
             bool in_whole, const Layout& of) {
            return Layout::block_cyclic({std::move(shape), std::move(block), std::move(processes),
                                         std::move(coordinates), order_of(fortran), in_whole},
                                        of);
          },
          nb::arg("shape"), nb::arg("block"), nb::arg("processes"), nb::arg("coordinates"),
          nb::arg("fortran"), nb::arg("in_whole"), nb::arg("of"))
      .def_static(
          "triangle",
          [](std::int64_t order, std::int64_t ld, bool lower, bool fortran, bool diagonal,
             const Layout& of) {
            const Half half = lower ? Half::lower : Half::upper;
            return Layout::triangle({order, ld, half, order_of(fortran), diagonal}, of);
          },
          nb::arg("order"), nb::arg("leading_dimension"), nb::arg("lower"), nb::arg("fortran"),
          nb::arg("diagonal"), nb::arg("of"))
      .def_static(
          "view",
          [](const Numbers& shape, const Numbers& strides, const Layout& of) {
            return Layout::view(shape, strides, of);
          },
          nb::arg("shape"), nb::arg("strides"), nb::arg("of"));
}

}  // namespace

void bind_layout(nb::module_& module) {
  nb::class_<Layout> layout(module, "MessageLayout", "Where the elements of a message are.");
  bind_makers(layout);
  // Not of the class: its property `bytes` hides the type in the stubs.
  module.def("encoded_layout", encoded, nb::arg("layout"));
  module.def("decoded_layout", decoded, nb::arg("given"), nb::arg("period"), nb::arg("hash"));
  layout.def_prop_ro("bytes", &Layout::bytes)
      .def_prop_ro("count", &Layout::count)
      .def_prop_ro("lower", &Layout::lower)
      .def_prop_ro("extent", &Layout::extent)
      .def_prop_ro("bounds", &Layout::bounds)
      .def_prop_ro("text", &Layout::text)
      .def_prop_ro("overlapping", &Layout::overlapping)
      .def_prop_ro("type",
                   [](const Layout& self) {
                     return self.elements().uniform()
                                ? std::string(message::name(self.elements().type()))
                                : std::string();
                   })
      .def(
          "check_same_elements",
          [](const Layout& self, const Layout& other) {
            self.check_same_elements(other.elements());
          },
          nb::arg("other"))
      .def("hash", [](const Layout& self) { return self.hash() >> 1; })
      .def(
          "equals", [](const Layout& self, const Layout& other) { return self == other; },
          nb::arg("other"))
      .def(
          "same_form",
          [](const Layout& self, const Layout& other) { return self.form() == other.form(); },
          nb::arg("other"))
      .def("pack", pack, nb::arg("address"), nb::arg("offset"), nb::arg("into"))
      .def("unpack", unpack, nb::arg("address"), nb::arg("offset"), nb::arg("data"),
           nb::arg("operation") = "");
}

}  // namespace quadriga::python
