// SPDX-License-Identifier: BSD-3-Clause
// python/src/task_record.cpp: a task's members, how it is made, and the short way to its body.
#include "task_record.h"

#include <quadriga/error.h>
#include <structmember.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "bindings.h"

namespace quadriga::python {

nb::handle interned(const char* name) { return PyUnicode_InternFromString(name); }

namespace {

constexpr PyObject* TaskRecord::*members[] = {
    &TaskRecord::number,     &TaskRecord::codelet, &TaskRecord::places,    &TaskRecord::access,
    &TaskRecord::parameters, &TaskRecord::given,   &TaskRecord::core,      &TaskRecord::launch,
    &TaskRecord::failures,   &TaskRecord::result,  &TaskRecord::exception, &TaskRecord::error,
    &TaskRecord::withdrawn,  &TaskRecord::division};

TaskRecord& of(PyObject* self) noexcept { return *reinterpret_cast<TaskRecord*>(self); }

bool is_there(const PyObject* member) noexcept { return member != nullptr && member != Py_None; }

bool is_tuple(PyObject* member) noexcept {
  return member != nullptr && PyTuple_CheckExact(member) != 0;
}

void set(PyObject*& member, PyObject* value) {
  Py_INCREF(value);
  Py_XSETREF(member, value);
}

/// What lasts until the process ends.
nb::handle lasting(const char* module, const char* name) {
  return nb::object(nb::module_::import_(module).attr(name)).release();
}

/// An operand's place, if its mode is what the codelet says; else null.
nb::object place_of(nb::handle operand, PyObject* mode) {
  static const nb::handle type = lasting("quadriga.data", "Operand");
  static const nb::handle name = interned("place");
  if (!operand.type().is(type) || PyTuple_GET_ITEM(operand.ptr(), 1) != mode) return {};
  return nb::handle(PyTuple_GET_ITEM(operand.ptr(), 0)).attr(name);
}

/// Sets places and modes if there is nothing to refuse or to look into.
bool take_plain(TaskRecord& record, PyObject* operands, PyObject* parameters) {
  static const nb::handle type = lasting("quadriga.codelets", "Codelet");
  static const nb::handle access_name = interned("access");
  if (!nb::handle(record.codelet).type().is(type) || PyDict_GET_SIZE(parameters) != 0) return false;
  const nb::object modes = nb::handle(record.codelet).attr(access_name);
  if (!PyTuple_CheckExact(modes.ptr())) return false;
  const Py_ssize_t count = PyTuple_GET_SIZE(modes.ptr());
  if (!PyTuple_CheckExact(operands) || PyTuple_GET_SIZE(operands) != count) return false;
  const nb::object places = nb::steal(PyTuple_New(count));
  if (!places) nb::raise_python_error();
  for (Py_ssize_t i = 0; i < count; ++i) {
    nb::object place = place_of(PyTuple_GET_ITEM(operands, i), PyTuple_GET_ITEM(modes.ptr(), i));
    if (!place) return false;
    PyTuple_SET_ITEM(places.ptr(), i, place.release().ptr());
  }
  set(record.places, places.ptr());
  set(record.access, modes.ptr());
  return true;
}

/// The number, the codelet, the operands and the parameters; take() looks at what isn't plain.
int init(PyObject* self, PyObject* arguments, PyObject* /*by_name*/) noexcept {
  PyObject *number, *codelet, *operands, *parameters;
  if (PyArg_UnpackTuple(arguments, "TaskRecord", 4, 4, &number, &codelet, &operands, &parameters) ==
      0)
    return -1;
  if (PyLong_Check(number) == 0 || PyDict_Check(parameters) == 0) {
    PyErr_SetString(PyExc_TypeError, "a record takes a number, a codelet, operands and a dict");
    return -1;
  }
  try {
    set(of(self).number, number);
    set(of(self).codelet, codelet);
    set(of(self).parameters, parameters);
    if (!take_plain(of(self), operands, parameters))
      nb::handle(self).attr("take")(nb::handle(operands));
    return 0;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return -1;
}

int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  for (const auto member : members) Py_VISIT(of(self).*member);
  return 0;
}

int clear(PyObject* self) noexcept {
  for (const auto member : members) Py_CLEAR(of(self).*member);
  return 0;
}

void dealloc(PyObject* self) noexcept {
  PyObject_GC_UnTrack(self);
  clear(self);
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

void start(TaskRecord& record) noexcept {
  record.thread = PyThread_get_thread_ident();
  record.started = 1;
}

PyObject* begin(PyObject* self, PyObject*) noexcept {
  if (is_there(of(self).withdrawn)) Py_RETURN_FALSE;
  start(of(self));
  Py_RETURN_TRUE;
}

PyObject* withdraw_as(PyObject* self, PyObject* error) noexcept {
  if (of(self).started != 0 || is_there(of(self).launch)) Py_RETURN_FALSE;
  set(of(self).withdrawn, error);
  Py_RETURN_TRUE;
}

PyObject* drop(PyObject* self, PyObject*) noexcept {
  static PyObject* const nothing = PyTuple_New(0);
  static PyObject* const none_by_name = PyDictProxy_New(nb::dict().ptr());
  set(of(self).places, nothing);
  set(of(self).access, nothing);
  set(of(self).parameters, none_by_name);
  Py_CLEAR(of(self).given);
  Py_CLEAR(of(self).launch);
  Py_CLEAR(of(self).division);
  Py_RETURN_NONE;
}

/// The view of an operand that is where its array is, as Place.view() makes it; null: it isn't
/// there, or its view isn't made yet.
nb::object view_in_place(nb::handle place, const View& tile, nb::handle mode) {
  static const nb::handle address_name = interned("address");
  static const nb::handle array_name = interned("array");
  static const nb::handle frozen_name = interned("frozen");
  static const nb::handle read = interned("read");
  const nb::object address = place.attr(address_name);
  if (address.is_none() || PyLong_AsVoidPtr(address.ptr()) != static_cast<const void*>(tile.data))
    return {};
  nb::object view = place.attr(mode.is(read) ? frozen_name : array_name);
  return view.is_none() ? nb::object() : view;
}

constexpr std::size_t most_operands = 8;
using Views = std::array<nb::object, most_operands>;

void call(TaskRecord& record, const Views& views, std::size_t count) {
  static const nb::handle body_name = interned("cpu");
  static const nb::handle keep_name = interned("keep_result");
  const nb::object body = nb::handle(record.codelet).attr(body_name);
  std::array<PyObject*, most_operands + 1> arguments{};
  for (std::size_t i = 0; i < count; ++i) arguments[i + 1] = views[i].ptr();
  nb::object result = nb::steal(PyObject_VectorcallDict(
      body.ptr(), arguments.data() + 1, count | PY_VECTORCALL_ARGUMENTS_OFFSET, record.parameters));
  if (!result) nb::raise_python_error();
  if (result.is_none()) return;
  nb::list held;
  held.append(std::move(result));
  nb::handle(&record.ob_base).attr(keep_name)(held);
}

PyTypeObject* type = nullptr;  // Lasts until the process ends.

constexpr PyMemberDef member(const char* name, int kind, std::size_t offset, int flags = 0) {
  return {name, kind, static_cast<Py_ssize_t>(offset), flags, nullptr};
}

PyMemberDef member_table[] = {
    member("number", T_OBJECT_EX, offsetof(TaskRecord, number), READONLY),
    member("codelet", T_OBJECT_EX, offsetof(TaskRecord, codelet), READONLY),
    member("places", T_OBJECT_EX, offsetof(TaskRecord, places)),
    member("access", T_OBJECT_EX, offsetof(TaskRecord, access)),
    member("parameters", T_OBJECT_EX, offsetof(TaskRecord, parameters), READONLY),
    member("given", T_OBJECT, offsetof(TaskRecord, given)),
    member("core", T_OBJECT, offsetof(TaskRecord, core)),
    member("launch", T_OBJECT, offsetof(TaskRecord, launch)),
    member("failures", T_OBJECT, offsetof(TaskRecord, failures)),
    member("result", T_OBJECT, offsetof(TaskRecord, result)),
    member("exception", T_OBJECT, offsetof(TaskRecord, exception)),
    member("error", T_OBJECT, offsetof(TaskRecord, error)),
    member("withdrawn", T_OBJECT, offsetof(TaskRecord, withdrawn)),
    member("division", T_OBJECT, offsetof(TaskRecord, division)),
    member("settled", T_BOOL, offsetof(TaskRecord, settled)),
    member("thread", T_ULONG, offsetof(TaskRecord, thread), READONLY),
    member("started", T_BOOL, offsetof(TaskRecord, started), READONLY),
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef method_table[] = {
    {"begin", begin, METH_NOARGS, "The body is about to be called; false if it is withdrawn."},
    {"drop", drop, METH_NOARGS, "Release the operands of an ended task."},
    {"withdraw_as", withdraw_as, METH_O, "It ends by this error; false if it is too late."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slot_table[] = {{Py_tp_doc, const_cast<char*>("A task's members.")},
                            {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
                            {Py_tp_init, reinterpret_cast<void*>(init)},
                            {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                            {Py_tp_members, member_table},
                            {Py_tp_methods, method_table},
                            {0, nullptr}};

PyType_Spec spec{"quadriga._core.TaskRecord", sizeof(TaskRecord), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slot_table};

}  // namespace

TaskRecord& record_of(nb::handle object) {
  require(PyObject_TypeCheck(object.ptr(), type) != 0, "expected a task's record");
  TaskRecord& record = of(object.ptr());
  require(record.number != nullptr && is_tuple(record.places) && is_tuple(record.access) &&
              PyTuple_GET_SIZE(record.places) == PyTuple_GET_SIZE(record.access),
          "a task's record needs a number, and a mode of access for each of its places");
  return record;
}

bool run_in_place(TaskRecord& record, const Arguments& arguments) {
  const std::size_t count = arguments.operands.size();
  if (is_there(record.given) || is_there(record.withdrawn) || count > most_operands ||
      static_cast<std::size_t>(PyTuple_GET_SIZE(record.places)) != count)
    return false;
  Views views;
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<Py_ssize_t>(i);
    views[i] = view_in_place(PyTuple_GET_ITEM(record.places, index), arguments.operands[i],
                             PyTuple_GET_ITEM(record.access, index));
    if (!views[i]) return false;
  }
  start(record);
  try {
    call(record, views, count);
  } catch (nb::python_error& error) {
    nb::handle(&record.ob_base).attr("fail_in_place")(error.value());
    throw;
  }
  return true;
}

void bind_task_record(nb::module_& module) {
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (type == nullptr) nb::raise_python_error();
  module.attr("TaskRecord") = nb::handle(reinterpret_cast<PyObject*>(type));
}

}  // namespace quadriga::python
