// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/device_parts.h: results that all chunks add to, in parts that stay on their devices.
//
// Each device has a part of each result, and the host's cores one for each core, since kernels that
// update a part follow one another. Parts are data of the engine with homes on the host: a device's
// first kernel brings the neutral element there, and the content comes home once, at the end.
//
// Invariants
//   1. All members are the driving thread's.
//   2. Parts are combined by device and core, whichever chunks they were made of.
//   3. Each chunk is in one part of a result that is combined, or combining fails.
#pragma once

#include <quadriga/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace quadriga {

class DeviceParts {
 public:
  explicit DeviceParts(Engine& engine) : engine_(engine) {}
  /// All tasks have ended. Errors are the engine's: its own calls tell them.
  ~DeviceParts();
  DeviceParts(const DeviceParts&) = delete;
  DeviceParts& operator=(const DeviceParts&) = delete;

  /// What a kernel updates for a chunk on a device; `place` spreads chunks over a host's cores.
  /// `is_counted`: false for a chunk that another part has already: this one is in no result.
  /// Errors: invalid_argument if the chunk's result has another size than that of those before.
  Data of(const FieldUse& use, const Chunk& chunk, DeviceId device, std::uint32_t place,
          bool is_counted);
  /// Brings the parts home and makes one result of them.
  /// Errors: of a kernel that failed; device_lost.
  void combine();
  /// By name, once they are combined.
  const std::map<std::string, View>& results() const noexcept { return results_; }

 private:
  struct Part {
    std::vector<std::byte> memory;
    View view;
    Data data;
    std::shared_ptr<const StreamReduction> reduction;
  };
  using Key = std::tuple<std::string, DeviceId, std::uint32_t, bool>;

  void check(const std::string& result, const Chunk& chunk, const View& wanted);

  Engine& engine_;
  std::map<Key, Part> parts_;
  std::map<std::string, View> shapes_;  ///< By name; without an address.
  std::map<std::string, View> results_;
};

}  // namespace quadriga
