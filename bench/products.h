// SPDX-License-Identifier: BSD-3-Clause
// bench/products.h: keeps a device computing while copies to or from it are measured.
#pragma once

#include <quadriga/machine.h>

#include <array>
#include <cstdint>

#include "device/backend.h"

namespace quadriga::bench {

/// Products in double precision on one device, one behind the other, while other work goes on. Who
/// takes completions of the backend hands them over.
class Products {
 public:
  /// Memory for three matrices, of order 2048 if the device has room, and a first product.
  /// Errors: too_large; what that product throws, as where its library is absent.
  Products(Backend& backend, DeviceId device);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  void begin();
  /// Queues no more, and waits for those that are queued. No other operation may be.
  void end();
  /// Whether it was one of these; the next one is queued in its place then.
  bool take(const Completion& completion);
  /// Those that ended while others went on.
  int count() const noexcept { return count_; }

 private:
  Products(Backend& backend, DeviceId device, StreamId stream);
  void queue(const Codelet& codelet, std::span<const View> operands,
             std::span<const std::byte> parameters);
  void multiply();

  Backend& backend_;
  DeviceId device_;
  StreamId stream_;
  std::array<View, 3> matrices_{};
  bool running_ = false;
  int queued_ = 0;
  int count_ = 0;
};

}  // namespace quadriga::bench
