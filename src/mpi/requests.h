// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/requests.h: what is known of a program's requests. The program holds MPI's own handles.
//
// Invariants
//   1. The table's lock guards which records there are; a record is touched by the thread whose
//      call starts, tests or ends its request, as MPI asks of programs.
//   2. A record is removed before MPI may give its handle to another request, which may be another
//      thread's at once: a call that may end a request holds its record meanwhile (HeldRecord).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "mpi/incoming.h"
#include "mpi/sending.h"

namespace quadriga::mpi {

/// A request that the library takes part in.
struct RequestRecord {
  RequestRecord() noexcept {}  // Not defaulted: that would clear all of it first.
  bool sends = false;
  bool persistent = false;
  bool active = true;
  bool ready = false;     ///< The handle is idle: `result` and `code` say how MPI's part has ended,
                          ///< or will say it once `inner` has.
  bool finished = false;  ///< Ended by MPI and looked at, but still open to the program.
  MPI_Comm comm = MPI_COMM_NULL;
  int source = 0;  ///< Of persistent receives.
  int tag = 0;
  Incoming in;
  Outgoing out;
  std::optional<PayloadOffer> offer;
  /// MPI's request of the envelope of a send that ends with its receive: it ends before the send.
  MPI_Request inner = MPI_REQUEST_NULL;
  bool inner_open = false;
  /// MPI_Isendrecv's send and receive, whose own handle is idle; null once they have ended.
  std::array<MPI_Request, 2> pair{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MpiEnvelope envelope;                 ///< What MPI sends,
  std::unique_ptr<std::byte[]> packed;  ///< or a device's bytes.
  MPI_Status result{};
  int code = MPI_SUCCESS;

  /// Whether MPI may be asked to end the request: a payload that nobody has fetched keeps it open
  /// for a while.
  bool is_settled();
  /// Whether nothing of `inner` and `pair` is left, asking MPI for it.
  bool has_inner_ended() noexcept;
  /// Ends what it can of `pair`; whether nothing is left.
  bool has_pair_ended() noexcept;
};
using RecordPtr = std::unique_ptr<RequestRecord>;

/// Records by handles.
class Requests {
 public:
  void add(MPI_Request request, RecordPtr record);
  /// Null for requests that are MPI's alone.
  RequestRecord* find(MPI_Request request) const noexcept;
  RecordPtr remove(MPI_Request request) noexcept;

  // Records are used again.
  RecordPtr make();
  void recycle(RecordPtr record) noexcept;

 private:
  struct Slot {
    std::uint64_t key = 0;  // 0: none.
    RecordPtr record;
  };
  std::size_t home(std::uint64_t key) const noexcept {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> shift_);
  }
  std::size_t place_of(std::uint64_t key) const noexcept;
  void grow();
  std::vector<Slot> slots_{64};
  unsigned shift_ = 58;
  std::vector<RecordPtr> spare_;
};

/// Records that there are. Changed with the lock, or by the only thread: no read-modify-write is
/// needed. Asked without the lock: a thread sees at least its own.
extern std::atomic<std::size_t> records;
inline bool has_no_records() noexcept { return records.load(std::memory_order_relaxed) == 0; }

/// Locks what requests() and messages set aside are, where several threads may call MPI.
class TableLock {
 public:
  TableLock() noexcept : held_(taken.locked) {
    if (held_) mutex.lock();
  }
  ~TableLock() {
    if (held_) mutex.unlock();
  }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;

 private:
  static std::mutex mutex;
  bool held_;
};

/// Null also where there are none at all.
RequestRecord* record_of(MPI_Request request) noexcept;
void keep_record(MPI_Request request, RecordPtr record);
RecordPtr take_record(MPI_Request request) noexcept;
RecordPtr new_record();
void recycle(RecordPtr record) noexcept;

/// The record of a request for the time of a call that may end it. Empty: MPI's alone.
class HeldRecord {
 public:
  HeldRecord() = default;
  explicit HeldRecord(MPI_Request request) noexcept : request_(request) {
    if (!has_no_records() && request != MPI_REQUEST_NULL) record_ = take_record(request);
  }
  ~HeldRecord() {
    if (record_) is_over_ ? recycle(std::move(record_)) : keep_record(request_, std::move(record_));
  }
  HeldRecord(HeldRecord&&) = default;
  HeldRecord& operator=(HeldRecord&&) = delete;
  HeldRecord(const HeldRecord&) = delete;
  HeldRecord& operator=(const HeldRecord&) = delete;

  RequestRecord* get() const noexcept { return record_.get(); }
  RequestRecord* operator->() const noexcept { return record_.get(); }
  explicit operator bool() const noexcept { return record_ != nullptr; }
  /// The request has ended: its handle is no longer its own.
  void let_go() noexcept { is_over_ = true; }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
  RecordPtr record_;
  bool is_over_ = false;
};

/// Active requests that the program has freed: they go on until they have ended.
void adopt(RecordPtr record, MPI_Request request);
void look_after_adopted() noexcept;
extern std::atomic<int> adopted;
/// For calls that take some time anyway.
inline void look_after() noexcept {
  if (adopted.load(std::memory_order_relaxed) != 0) look_after_adopted();
}

}  // namespace quadriga::mpi
