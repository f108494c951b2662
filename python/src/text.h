// SPDX-License-Identifier: BSD-3-Clause
// python/src/text.h: strings of C++ and of Python; bytes that aren't UTF-8 go through unchanged.
//
// Names of files and values from the environment are bytes. Python keeps those that aren't UTF-8 as
// lone surrogates (PEP 383); so does what comes from here, and what goes there gets its bytes back.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace nanobind::detail {

inline handle text_from(std::string_view value) noexcept {
  return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()),
                              "surrogateescape");
}

/// The bytes of a text, valid while both it and `kept` are; false if it is none.
inline bool text_to(handle source, std::string_view& value, object& kept) noexcept {
  if (!PyUnicode_Check(source.ptr())) return false;
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
  if (!bytes) {
    PyErr_Clear();
    kept = steal(PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape"));
    char* encoded = nullptr;
    if (!kept || PyBytes_AsStringAndSize(kept.ptr(), &encoded, &size) != 0) {
      PyErr_Clear();
      return false;
    }
    bytes = encoded;
  }
  value = {bytes, static_cast<std::size_t>(size)};
  return true;
}

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    object kept;
    std::string_view bytes;
    if (!text_to(source, bytes, kept)) return false;
    value = std::string(bytes);
    return true;
  }

  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return text_from(text);
  }
};

template <>
struct type_caster<std::string_view> {
  NB_TYPE_CASTER(std::string_view, const_name("str"))

  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    return text_to(source, value, kept);
  }

  static handle from_cpp(std::string_view text, rv_policy, cleanup_list*) noexcept {
    return text_from(text);
  }

  object kept;
};

}  // namespace nanobind::detail
