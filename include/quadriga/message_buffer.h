// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/message_buffer.h: what messages are sent from, and received into.
#pragma once

#include <quadriga/message_layout.h>
#include <quadriga/message_types.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace quadriga::message {

class DevicePort;

/// Whose memory a buffer is, as Devices make it; of nobody: the host's.
struct DeviceMemory {
  std::shared_ptr<DevicePort> port = {};
  std::uint16_t device = 0;
  std::optional<std::uintptr_t> stream = {};
};

/// What `data()` of a range points to.
template <class T>
using PointedTo = std::remove_pointer_t<decltype(std::declval<T&>().data())>;

/// Vectors, arrays, spans: elements that lie together.
template <class T>
concept ElementRange = std::convertible_to<decltype(std::declval<T&>().size()), std::size_t> &&
    Element<std::remove_cv_t<PointedTo<T>>>;

/// The same whose elements can be written.
template <class T>
concept WritableRange = ElementRange<T> && !std::is_const_v<PointedTo<T>>;

/// Elements to be sent: a range, or those of a layout. It refers to them: they must outlive it.
class SendBuffer {
 public:
  /// Nothing.
  SendBuffer() = default;
  template <ElementRange Elements>
  requires(!std::same_as<std::remove_cvref_t<Elements>, SendBuffer>)
      SendBuffer(const Elements& range)
      : SendBuffer(range.data(), static_cast<std::int64_t>(range.size()),
                   element_type<std::remove_cv_t<PointedTo<Elements>>>()) {}
  /// What the layout says, its offsets counted from `data`.
  SendBuffer(const void* data, Layout layout) : layout_(std::move(layout)), data_(data) {}
  /// The same in a device's memory, see Devices::sent().
  SendBuffer(const void* data, Layout layout, DeviceMemory memory)
      : layout_(std::move(layout)), data_(data), memory_(std::move(memory)) {}

  const Layout& layout() const noexcept { return layout_; }
  const void* data() const noexcept { return data_; }
  const DeviceMemory& memory() const noexcept { return memory_; }

 private:
  SendBuffer(const void* data, std::int64_t count, ElementType type);
  Layout layout_;
  const void* data_ = nullptr;
  DeviceMemory memory_;
};

/// Elements to be received, as SendBuffer. Elements of a layout mustn't overlap.
class ReceiveBuffer {
 public:
  /// Nothing.
  ReceiveBuffer() = default;
  template <class Elements>
  requires(WritableRange<std::remove_reference_t<Elements>> &&
           !std::same_as<std::remove_cvref_t<Elements>, ReceiveBuffer>)
      ReceiveBuffer(Elements&& range)
      : ReceiveBuffer(range.data(), static_cast<std::int64_t>(range.size()),
                      element_type<std::remove_cv_t<PointedTo<Elements>>>()) {}
  ReceiveBuffer(void* data, Layout layout) : layout_(std::move(layout)), data_(data) {}
  /// The same in a device's memory, see Devices::received().
  ReceiveBuffer(void* data, Layout layout, DeviceMemory memory)
      : layout_(std::move(layout)), data_(data), memory_(std::move(memory)) {}

  const Layout& layout() const noexcept { return layout_; }
  void* data() const noexcept { return data_; }
  const DeviceMemory& memory() const noexcept { return memory_; }

 private:
  ReceiveBuffer(void* data, std::int64_t count, ElementType type);
  Layout layout_;
  void* data_ = nullptr;
  DeviceMemory memory_;
};

}  // namespace quadriga::message
