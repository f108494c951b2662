// SPDX-License-Identifier: BSD-3-Clause
// python/src/py_host_buffers.cpp: memory of a stream's chunks as NumPy arrays of bytes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <utility>

#include "bindings.h"
#include "pipeline/host_buffers.h"
#include "py_engine.h"

namespace quadriga::python {
namespace {

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

/// Buffers and the engine that pins them. Arrays may outlive both.
class PyHostBuffers {
 public:
  PyHostBuffers(std::shared_ptr<EngineState> state, std::size_t most_bytes)
      : state_(std::move(state)), buffers_(host_buffers(state_->engine(), most_bytes)) {}
  PyHostBuffers(PyHostBuffers&&) = default;
  PyHostBuffers& operator=(PyHostBuffers&&) = delete;
  ~PyHostBuffers() {
    if (buffers_) buffers_->close();
  }

  /// None where nothing is copied to devices.
  nb::object take(std::size_t bytes) const {
    if (!buffers_) return nb::none();
    auto kept = std::make_unique<std::shared_ptr<std::byte[]>>(buffers_->take(bytes));
    auto* const memory = reinterpret_cast<std::uint8_t*>(kept->get());
    const nb::capsule owner(kept.release(), [](void* gone) noexcept {
      delete static_cast<std::shared_ptr<std::byte[]>*>(gone);
    });
    return nb::cast(Bytes(memory, {bytes}, owner));
  }
  std::size_t bytes() const { return buffers_ ? buffers_->bytes() : 0; }

 private:
  std::shared_ptr<EngineState> state_;
  std::shared_ptr<HostBuffers> buffers_;
};

}  // namespace

void bind_host_buffers(nb::module_& module) {
  nb::class_<PyHostBuffers>(module, "HostBuffers",
                            "Memory for chunks that is quick to copy to devices.")
      .def(nb::new_([](PyEngine& engine, std::size_t most_bytes) {
             const auto state = engine.state();
             const std::size_t most =
                 most_bytes > 0 ? most_bytes : state->engine().options().host_memory / 2;
             return PyHostBuffers(state, most);
           }),
           nb::arg("engine"), nb::arg("most_bytes"))
      .def("take", &PyHostBuffers::take, nb::arg("bytes"),
           nb::sig("def take(self, bytes: int) -> typing.Any"))
      .def_prop_ro("bytes", &PyHostBuffers::bytes);
}

}  // namespace quadriga::python
