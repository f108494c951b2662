// SPDX-License-Identifier: BSD-3-Clause
// python/src/config.cpp: settings, messages to Python's logging, sizes as people write them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <climits>

#include "base/cgroup.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mapped_files.h"
#include "base/units.h"
#include "bindings.h"
#include "gil_gate.h"

namespace quadriga::python {
namespace {

using SettingTuple = nb::typed<nb::tuple, nb::str, nb::any, nb::str, nb::str, nb::str, nb::str>;

nb::object typed_value(const Setting& setting) {
  switch (setting.type) {
    case SettingType::number:
      return nb::int_(parse_integer(setting.value, 0, INT_MAX));
    case SettingType::bytes:
      return nb::int_(parse_bytes(setting.value));
    case SettingType::flag:
      return nb::bool_(setting.value == "true");
    case SettingType::text:
      break;
  }
  return nb::cast(setting.value);
}

SettingTuple as_tuple(const Setting& setting) {
  return nb::make_tuple(setting.key, typed_value(setting), std::string(name(setting.origin)),
                        setting.source, setting.meaning, setting.value);
}

nb::typed<nb::list, SettingTuple> all_settings() {
  nb::list settings;
  for (const Setting& setting : Config::global().all()) settings.append(as_tuple(setting));
  return settings;
}

/// Levels of Python's logging module.
int python_level(LogLevel level) noexcept { return 10 * (static_cast<int>(level) + 1); }

/// Sends messages to a Python callable (level, message); it is kept until the process ends.
void log_to(const nb::typed<nb::callable, void(int, nb::str)>& sink) {
  PyObject* const target = nb::object(sink).release().ptr();
  set_log_sink([target](LogLevel level, std::string_view message) {
    const GilHere gil;
    if (!gil) return;
    nb::borrow<nb::object>(target)(python_level(level), message);
  });
}

}  // namespace

void bind_config(nb::module_& module) {
  module.def("settings", all_settings,
             "(key, value, origin, source, meaning, text) of every setting in force.");
  module.def(
      "setting",
      [](std::string_view key, std::string_view argument) {
        return as_tuple(Config::global().get(key, argument));
      },
      nb::arg("key"), nb::arg("argument") = "");
  module.def(
      "set_setting",
      [](std::string_view key, std::string_view value) { Config::global().set(key, value); },
      nb::arg("key"), nb::arg("value"));
  module.def(
      "unset_setting", [](std::string_view key) { Config::global().unset(key); }, nb::arg("key"));
  module.def("variable_of_process", variable_of_process, nb::arg("process"), nb::arg("name"));
  module.def("log_to", log_to, nb::arg("sink"));
  module.def(
      "set_log_level", [](std::string_view level) { set_log_level(parse_log_level(level)); },
      nb::arg("level"));
  module.def(
      "log",
      [](int level, std::string_view message) {
        const GilReleased released;
        log(static_cast<LogLevel>(level / 10 - 1), message);
      },
      nb::arg("level"), nb::arg("message"));
  module.def(
      "watch_mapping",
      [](std::uintptr_t begin, std::size_t bytes, const std::string& file) {
        watch_mapping(reinterpret_cast<const void*>(begin), bytes, file);
      },
      nb::arg("begin"), nb::arg("bytes"), nb::arg("file"));
  module.def(
      "note_truncation",
      [](std::uintptr_t begin, std::size_t bytes) {
        note_truncation(reinterpret_cast<const void*>(begin), bytes);
      },
      nb::arg("begin"), nb::arg("bytes"));
  module.def(
      "truncated_mappings",
      [] {
        nb::list found;
        for (const void* const each : truncated_mappings())
          found.append(reinterpret_cast<std::uintptr_t>(each));
        return found;
      },
      nb::sig("def truncated_mappings() -> list[int]"));
  module.def(
      "forget_mapping",
      [](std::uintptr_t begin) { forget_mapping(reinterpret_cast<const void*>(begin)); },
      nb::arg("begin"));
  module.def("watch_partial", &watch_partial, nb::arg("path"));
  module.def("forget_partial", &forget_partial, nb::arg("path"));
  module.def("parse_bytes", &parse_bytes, nb::arg("text"));
  module.def("parse_seconds", &parse_seconds, nb::arg("text"));
  module.def("format_bytes", &format_bytes, nb::arg("bytes"));
  module.def("format_bytes_per_second", &format_bytes_per_second, nb::arg("bytes_per_second"));
  module.def("format_seconds", &format_seconds, nb::arg("seconds"));
  module.def("cache_folder", cache_folder);
  module.def("cuda_visible_devices", cuda_visible_devices);
  module.def("usable_cores", [] { return usable_cores(); });
  module.def("usable_memory_bytes", [] { return usable_memory_bytes(); });
}

}  // namespace quadriga::python
