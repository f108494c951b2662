// SPDX-License-Identifier: BSD-3-Clause
// python/src/error.cpp: errors of the library as the Python exceptions of quadriga.errors.
#include <nanobind/nanobind.h>
#include <quadriga/error.h>
#include <quadriga/linalg.h>

#include <memory>
#include <string>
#include <string_view>

#include "bindings.h"
#include "body.h"

namespace quadriga::python {
namespace {

/// Class names of quadriga.errors, by code.
const char* class_of(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return "InvalidArgument";
    case Errc::too_large:
      return "TooLarge";
    case Errc::not_positive_definite:
      return "NotPositiveDefinite";
    case Errc::task_failed:
      return "TaskFailed";
    case Errc::device_lost:
      return "DeviceLost";
    case Errc::peer_lost:
      return "PeerLost";
    case Errc::deadline:
      return "Deadline";
    case Errc::cancelled:
      return "Cancelled";
    case Errc::io:
      return "IoError";
    case Errc::unavailable:
      return "Unavailable";
    case Errc::internal:
      return "Internal";
  }
  return "Error";
}

void set(const char* name, std::string_view message, const char* attribute, long long value) {
  const nb::object kind = nb::module_::import_("quadriga.errors").attr(name);
  const nb::object error = kind(message);
  if (attribute) nb::setattr(error, attribute, nb::int_(value));
  PyErr_SetObject(kind.ptr(), error.ptr());
}

/// With what quadriga.tasks looks the body's exception up by, which keeps that until it has.
void set_body_failure(const char* name, std::string_view message, const BodyFailure& cause) {
  const nb::object kind = nb::module_::import_("quadriga.errors").attr(name);
  const nb::object error = kind(message);
  nb::setattr(error, "record", nb::int_(cause.record()));
  if (cause.named()) {
    auto held = std::make_unique<NamedTasks::Hold>(cause.named());
    nb::setattr(error, "named", nb::capsule(held.get(), [](void* hold) noexcept {
                  delete static_cast<NamedTasks::Hold*>(hold);
                }));
    static_cast<void>(held.release());
  }
  PyErr_SetObject(kind.ptr(), error.ptr());
}

void set_failed_task(const Error& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (const BodyFailure& cause) {
    set_body_failure(class_of(error.code()), error.what(), cause);
    return;
  } catch (const PeerLost& cause) {
    set("PeerLost", error.what(), "rank", cause.rank());
    return;
  } catch (const Error& cause) {
    // A message's own deadline, not that of who waits for its task.
    if (cause.code() == Errc::deadline) return set("Deadline", error.what(), "of_task", 1);
    if (cause.code() == Errc::invalid_argument)
      return set("InvalidArgument", error.what(), nullptr, 0);
  } catch (...) {
    // Another cause: the message names it.
  }
  set(class_of(error.code()), error.what(), nullptr, 0);
}

}  // namespace

bool raise_as_python(const std::exception_ptr& pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const NotPositiveDefinite& error) {
    // SciPy's words.
    const std::string message =
        std::to_string(error.minor()) + "-th leading minor of the array is not positive definite";
    set("NotPositiveDefinite", message, "minor", error.minor());
  } catch (const linalg::SingularMatrix& error) {
    const std::string message =
        "singular matrix: resolution failed at diagonal " + std::to_string(error.index());
    set("SingularMatrix", message, nullptr, 0);
  } catch (const PeerLost& error) {
    set("PeerLost", error.what(), "rank", error.rank());
  } catch (const Error& error) {
    set_failed_task(error);
  } catch (const BodyFailure& cause) {
    set_body_failure("TaskFailed", cause.what(), cause);
  } catch (...) {
    return false;
  }
  return true;
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    if (!raise_as_python(pointer)) std::rethrow_exception(pointer);
  });
}

}  // namespace quadriga::python
