// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/list_tables_cuda.h: tables of lists on one CUDA device, kept by content.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "message/pack/device_table.h"

namespace quadriga::message::cuda {

/// Tables of lists in a device's memory. Equal lists share one, whatever layouts they belong to.
///
/// A table is copied by a stream of its own, so that the host never waits for the streams that use
/// it; these wait for its events. It is freed, in order, after the last of its uses.
/// One thread at a time, with the device current.
class ListTables {
 public:
  explicit ListTables(std::size_t most_bytes);
  ~ListTables();
  ListTables(const ListTables&) = delete;
  ListTables& operator=(const ListTables&) = delete;

  using Use = std::function<void(const RunSlice&, const ListTable&)>;
  /// Calls use() for each slice of the list, in order, when what is queued on the stream later on
  /// finds its table on the device. A list that isn't there yet is copied slice by slice in
  /// between. `whole`: as one slice. Says whether the list was there.
  bool for_each(const std::shared_ptr<const RunList>& list, bool whole, cudaStream_t stream,
                const Use& use);
  /// To be called after what uses tables was queued on the stream: frees those used longest ago
  /// where they are more than they may be.
  void used(cudaStream_t stream);

  std::size_t bytes() const noexcept { return bytes_; }
  std::uint64_t uploaded() const noexcept { return uploaded_; }

 private:
  struct Slice {
    RunSlice runs;
    ListTable table;
    void* memory = nullptr;
    cudaEvent_t arrived = nullptr;
  };
  struct UseOfStream {
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
  };
  struct Entry {
    std::shared_ptr<const RunList> list;
    std::vector<std::weak_ptr<const RunList>> equal;  ///< Others of this content, seen lately.
    std::uint64_t hash = 0;
    bool whole = false;
    bool touched = false;  ///< Used since used() was called.
    std::size_t bytes = 0;
    std::vector<Slice> slices;
    std::vector<UseOfStream> uses;
  };
  /// Pinned memory by which a slice's table goes to the device.
  struct Staging {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    cudaEvent_t free = nullptr;
  };

  Entry* find(const std::shared_ptr<const RunList>& list, bool whole);
  void upload(Entry& entry, const RunSlice& runs);
  static void note_use(Entry& entry, cudaStream_t stream);
  void free(Entry& entry);

  const std::size_t most_bytes_;
  std::list<Entry> entries_;  // The latest used first.
  std::array<Staging, 2> staging_;
  std::size_t next_staging_ = 0;
  cudaStream_t uploads_ = nullptr;
  cudaStream_t releases_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t uploaded_ = 0;
};

}  // namespace quadriga::message::cuda
