// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/ending.h: how requests that the library takes part in are tested, awaited and ended.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "mpi/requests.h"

namespace quadriga::mpi {

/// Starts a persistent request, or makes it ready at once if its message was taken early.
int start(RequestRecord& record, MPI_Request* request) noexcept;

/// After MPI has ended a request with `status`, or it is ready: does what is left and lets the
/// record go unless it is persistent; MPI's error code, which isn't raised yet.
int conclude(HeldRecord& held, MPI_Request* request, MPI_Status& status) noexcept;

/// A request of MPI's that is inactive for ever: a handle for what is ready without MPI.
int idle_request(MPI_Comm comm, MPI_Request* request) noexcept;

/// The requests of a call, and their records, which it holds.
class RequestList {
 public:
  /// Null requests are looked over. Cost: one look for each, none where there are no records.
  RequestList(int count, MPI_Request* requests);
  ~RequestList() { std::ranges::destroy(held_); }
  RequestList(const RequestList&) = delete;
  RequestList& operator=(const RequestList&) = delete;
  bool has_records() const noexcept { return any_; }
  int size() const noexcept { return static_cast<int>(requests_.size()); }
  std::span<MPI_Request> requests() const noexcept { return requests_; }
  RequestRecord* record(int index) const noexcept {
    return held_[static_cast<std::size_t>(index)].get();
  }
  /// First index, from one on, of a request that is ready without MPI; -1: none.
  int ready(int from = 0) const;
  bool all_settled() const;
  /// Whether requests are open that MPI can't end: payloads keep them so, or they are ready without
  /// MPI. Those are null in masked().
  bool mask_unsettled();
  std::span<MPI_Request> masked() noexcept { return masked_; }
  /// Takes over what MPI's call did to masked() at an index.
  void accept(int index) noexcept;
  /// Concludes; MPI's error code.
  int end(int index, MPI_Status& status) noexcept;
  MPI_Comm comm(int index) const noexcept { return record(index)->comm; }

 private:
  static constexpr int few = 8;  // No allocation up to so many.
  alignas(HeldRecord) std::array<std::byte, few * sizeof(HeldRecord)> few_;
  std::unique_ptr<std::byte[]> many_;
  std::span<HeldRecord> held_;  // In one of them.
  std::vector<MPI_Request> masked_;
  std::span<MPI_Request> requests_;
  bool any_ = false;
};

}  // namespace quadriga::mpi
