// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_formats.cpp: readers of files for sources in Python; quadriga.formats wraps them.
#include "py_formats.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gil_gate.h"
#include "pipeline/fasta_text.h"
#include "text.h"

namespace quadriga::python {

namespace nb = nanobind;

namespace {

template <class Value>
using Array = nb::ndarray<nb::numpy, Value, nb::ndim<1>>;

/// The array keeps what it was made of.
template <class Value, class Owned>
nb::object array_of(Owned values) {
  auto kept = std::make_unique<Owned>(std::move(values));
  auto* const memory = reinterpret_cast<Value*>(kept->data());
  const std::size_t count = kept->size();
  const nb::capsule owner(kept.release(),
                          [](void* gone) noexcept { delete static_cast<Owned*>(gone); });
  return nb::cast(Array<Value>(memory, {count}, owner));
}

nb::object text_of(const std::string& name) {
  PyObject* const found =
      PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "replace");
  if (!found) throw nb::python_error();
  return nb::steal(found);
}

/// Letters, starts and names.
nb::tuple told(FastaRecords records) {
  nb::list names;
  for (const std::string& each : records.names) names.append(text_of(each));
  return nb::make_tuple(array_of<std::uint8_t>(std::move(records.letters)),
                        array_of<std::int64_t>(std::move(records.starts)), names);
}

/// What `read` returns, which may have fewer bytes than it was asked for.
FastaText::Read blocks_of(const nb::callable& read) {
  return [read](std::span<char> into) -> std::size_t {
    const auto block = nb::cast<nb::bytes>(read(into.size()));
    const std::size_t count = std::min(block.size(), into.size());
    std::memcpy(into.data(), block.c_str(), count);
    return count;
  };
}

}  // namespace

void bind_formats(nb::module_& module) {
  nb::class_<FastaText>(module, "FastaText", "Records of a text that Python reads.")
      .def(
          "__init__",
          [](FastaText* self, const std::string& path, const nb::callable& read,
             std::size_t block) { new (self) FastaText(path, blocks_of(read), block); },
          nb::arg("path"), nb::arg("read"), nb::arg("block"),
          nb::sig("def __init__(self, path: str, read: typing.Callable[[int], bytes], block: int) "
                  "-> None"))
      .def_prop_ro("has_record", &FastaText::has_record)
      .def(
          "take", [](FastaText& self, std::int64_t most) { return told(self.take(most)); },
          nb::arg("most"),
          nb::sig("def take(self, most: int) -> tuple[typing.Any, typing.Any, list[str]]"));
  nb::class_<FastaFile>(module, "FastaFile", "Records of a file.")
      .def(nb::init<std::string>(), nb::arg("path"))
      .def_prop_ro("has_record", [](FastaFile& self) { return self.text().has_record(); })
      .def(
          "take",
          [](FastaFile& self, std::int64_t most) {
            FastaRecords records;
            {
              const GilReleased released;
              records = self.text().take(most);
            }
            return told(std::move(records));
          },
          nb::arg("most"),
          nb::sig("def take(self, most: int) -> tuple[typing.Any, typing.Any, list[str]]"));
  nb::class_<IndexedFasta>(module, "IndexedFasta", "Chunks of a file by number.")
      .def(
          "__init__",
          [](IndexedFasta* self, const std::string& path, std::int64_t records,
             const std::string& index) {
            const GilReleased released;
            new (self) IndexedFasta(path, records, index);
          },
          nb::arg("path"), nb::arg("records"), nb::arg("index"))
      .def("sizes", [](const IndexedFasta& self) { return array_of<double>(self.sizes()); })
      .def(
          "read",
          [](IndexedFasta& self, std::size_t chunk) {
            FastaRecords records;
            {
              const GilReleased released;
              records = self.read(chunk);
            }
            return told(std::move(records));
          },
          nb::arg("chunk"),
          nb::sig("def read(self, chunk: int) -> "
                  "tuple[typing.Any, typing.Any, list[str]]"));
}

}  // namespace quadriga::python
