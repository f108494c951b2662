// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_wait.cpp: waits, tests, MPI_Request_get_status, MPI_Cancel, MPI_Request_free.
//
// Where nobody sends envelopes there are no records, and each call is MPI's at once.
//
// MPI ends the requests; what has arrived is looked at afterwards. A send whose payload nobody has
// fetched keeps its request open: MPI is asked to end the others only.
#include <sched.h>

#include <algorithm>
#include <array>

#include "mpi/ending.h"

namespace quadriga::mpi {
namespace {

constexpr MPI_Status* no_status = nullptr;

// Statuses that the program doesn't want are still needed.
class Statuses {
 public:
  Statuses(MPI_Status* given, int count)
      : given_(given == MPI_STATUSES_IGNORE ? no_status : given) {
    if (given_ == nullptr && count > few) many_.resize(static_cast<std::size_t>(count));
  }
  MPI_Status* all() noexcept {
    if (given_ != nullptr) return given_;
    return many_.empty() ? few_.data() : many_.data();
  }
  MPI_Status& at(int index) noexcept { return all()[index]; }

 private:
  static constexpr int few = 8;
  MPI_Status* given_;
  std::array<MPI_Status, few> few_;
  std::vector<MPI_Status> many_;
};

// Ends those that MPI says have ended; errors of each go to its status.
class Ends {
 public:
  explicit Ends(int code) : code_(code) {}
  void add(RequestList& list, int index, MPI_Status& status) {
    const bool failed = code_ == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS;
    if (failed && status.MPI_ERROR == MPI_ERR_PENDING) return;
    const int code = list.end(index, status);
    if (failed || code == MPI_SUCCESS) return;
    errors_.emplace_back(&status, code);
    comm_ = list.comm(index);
  }
  // After all were added: MPI's code for the call.
  int raised(std::span<MPI_Status> ended) {
    if (errors_.empty()) return code_;
    if (code_ != MPI_ERR_IN_STATUS)
      for (MPI_Status& each : ended) each.MPI_ERROR = MPI_SUCCESS;
    for (const auto& [status, code] : errors_) status->MPI_ERROR = code;
    return raise(comm_, MPI_ERR_IN_STATUS);
  }

 private:
  int code_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<std::pair<MPI_Status*, int>> errors_;
};

bool is_ended(int code) { return code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS; }

// One of many, without waiting; whether there is one. `*index` is MPI_UNDEFINED if nothing is open.
int test_any(RequestList& list, int* index, int* flag, MPI_Status& status) {
  *index = list.ready();
  int code = MPI_SUCCESS;
  bool open = false;
  if (*index >= 0) {
    *flag = 1;
  } else {
    open = list.mask_unsettled();
    code = PMPI_Testany(list.size(), list.masked().data(), index, flag, &status);
    if (*flag != 0 && *index == MPI_UNDEFINED && open) *flag = 0;
    if (*flag == 0 || *index == MPI_UNDEFINED) return code;
    list.accept(*index);
  }
  if (list.record(*index) == nullptr) return code;
  const MPI_Comm comm = list.comm(*index);
  const int own = list.end(*index, status);
  return code != MPI_SUCCESS ? code : raise(comm, own);
}

// All that have ended, whether MPI knows it or not.
int test_some(RequestList& list, int* count, int* indices, MPI_Status* statuses) {
  int ready = 0;
  for (int i = list.ready(); i >= 0; i = list.ready(i + 1)) indices[ready++] = i;
  const bool open = list.mask_unsettled();
  int more = 0;
  const int code =
      PMPI_Testsome(list.size(), list.masked().data(), &more, indices + ready, statuses + ready);
  if (!is_ended(code)) return code;
  if (more == MPI_UNDEFINED && !open && ready == 0) {
    *count = MPI_UNDEFINED;
    return code;
  }
  *count = ready + (more == MPI_UNDEFINED ? 0 : more);
  Ends ends(code);
  for (int i = 0; i < *count; ++i) {
    if (i >= ready)
      list.accept(indices[i]);
    else if (code != MPI_SUCCESS)
      statuses[i].MPI_ERROR = MPI_SUCCESS;
    ends.add(list, indices[i], statuses[i]);
  }
  return ends.raised({statuses, static_cast<std::size_t>(*count)});
}

int all_ended(RequestList& list, int code, Statuses& statuses) {
  Ends ends(code);
  // Receives first: their senders may be waiting as this rank does.
  bool has_sends = false;
  for (int i = 0; i < list.size(); ++i) {
    const RequestRecord* const record = list.record(i);
    if (record == nullptr) continue;
    if (record->sends)
      has_sends = true;
    else
      ends.add(list, i, statuses.at(i));
  }
  for (int i = 0; has_sends && i < list.size(); ++i)
    if (list.record(i) != nullptr && list.record(i)->sends) ends.add(list, i, statuses.at(i));
  return ends.raised({statuses.all(), static_cast<std::size_t>(list.size())});
}

template <class Body>
int guarded(const Body& body) noexcept {
  return quadriga::mpi::guarded(MPI_COMM_WORLD, body);
}

}  // namespace
}  // namespace quadriga::mpi

using namespace quadriga::mpi;

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (!taken.receives) return PMPI_Wait(request, status);
  look_after();
  HeldRecord record(*request);
  if (!record) return PMPI_Wait(request, status);
  MPI_Status own{};
  MPI_Status& seen = *wanted(status, own);
  const MPI_Comm comm = record->comm;
  const int code = record->ready ? MPI_SUCCESS : PMPI_Wait(request, &seen);
  const int end = conclude(record, request, seen);
  return code != MPI_SUCCESS ? code : raise(comm, end);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (!taken.receives) return PMPI_Test(request, flag, status);
  look_after();
  HeldRecord record(*request);
  if (!record) return PMPI_Test(request, flag, status);
  return guarded([&] {
    MPI_Status own{};
    MPI_Status& seen = *wanted(status, own);
    const MPI_Comm comm = record->comm;
    int code = MPI_SUCCESS;
    if (!record->is_settled()) {
      // Not by MPI_Request_get_status: a persistent request that MPICH 5 was asked of so loses its
      // status in MPI_Testall.
      let_progress();
      *flag = 0;
      return code;
    }
    *flag = 1;
    if (!record->ready) code = PMPI_Test(request, flag, &seen);
    if (*flag == 0) return code;
    const int end = conclude(record, request, seen);
    return code != MPI_SUCCESS ? code : raise(comm, end);
  });
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (!taken.receives) return PMPI_Waitall(count, requests, statuses);
  return guarded([&] {
    look_after();
    RequestList list(count, requests);
    if (!list.has_records()) return PMPI_Waitall(count, requests, statuses);
    Statuses seen(statuses, count);
    const int code = PMPI_Waitall(count, requests, seen.all());
    return is_ended(code) ? all_ended(list, code, seen) : code;
  });
}

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (!taken.receives) return PMPI_Testall(count, requests, flag, statuses);
  return guarded([&]() -> int {
    look_after();
    RequestList list(count, requests);
    if (!list.has_records()) return PMPI_Testall(count, requests, flag, statuses);
    if (!list.all_settled()) {
      let_progress();
      *flag = 0;
      return MPI_SUCCESS;
    }
    Statuses seen(statuses, count);
    const int code = PMPI_Testall(count, requests, flag, seen.all());
    return is_ended(code) && *flag != 0 ? all_ended(list, code, seen) : code;
  });
}

int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (!taken.receives) return PMPI_Testany(count, requests, index, flag, status);
  return guarded([&] {
    look_after();
    RequestList list(count, requests);
    if (!list.has_records()) return PMPI_Testany(count, requests, index, flag, status);
    MPI_Status own{};
    return test_any(list, index, flag, *wanted(status, own));
  });
}

int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (!taken.receives) return PMPI_Waitany(count, requests, index, status);
  return guarded([&] {
    look_after();
    RequestList list(count, requests);
    if (!list.has_records()) return PMPI_Waitany(count, requests, index, status);
    MPI_Status own{};
    for (;;) {
      int flag = 0;
      const int code = test_any(list, index, &flag, *wanted(status, own));
      if (flag != 0 || code != MPI_SUCCESS) return code;
      sched_yield();
    }
  });
}

int MPI_Testsome(int count, MPI_Request* requests, int* ended, int* indices, MPI_Status* statuses) {
  if (!taken.receives) return PMPI_Testsome(count, requests, ended, indices, statuses);
  return guarded([&] {
    look_after();
    RequestList list(count, requests);
    if (!list.has_records()) return PMPI_Testsome(count, requests, ended, indices, statuses);
    Statuses seen(statuses, count);
    return test_some(list, ended, indices, seen.all());
  });
}

int MPI_Waitsome(int count, MPI_Request* requests, int* ended, int* indices, MPI_Status* statuses) {
  if (!taken.receives) return PMPI_Waitsome(count, requests, ended, indices, statuses);
  return guarded([&] {
    look_after();
    RequestList list(count, requests);
    if (!list.has_records()) return PMPI_Waitsome(count, requests, ended, indices, statuses);
    Statuses seen(statuses, count);
    for (;;) {
      const int code = test_some(list, ended, indices, seen.all());
      if (*ended != 0 || code != MPI_SUCCESS) return code;
      sched_yield();
    }
  });
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (!taken.receives) return PMPI_Request_get_status(request, flag, status);
  RequestRecord* const record = record_of(request);
  if (record == nullptr) return PMPI_Request_get_status(request, flag, status);
  return guarded([&]() -> int {
    MPI_Status own{};
    MPI_Status& seen = *wanted(status, own);
    if (record->active && !record->ready && !record->finished) {
      const bool settled = record->is_settled();
      const int code = PMPI_Request_get_status(request, flag, &seen);
      if (!settled) *flag = 0;
      if (*flag == 0 || code != MPI_SUCCESS || record->sends) return code;
      // The receive has ended; what is left is done once, now.
      record->code = record->in.finish(seen);
      record->result = seen;
      record->finished = true;
      return MPI_SUCCESS;
    }
    *flag = 1;
    const bool known = record->active && (record->ready || record->finished);
    if (known && !record->is_settled()) {
      *flag = 0;
      return MPI_SUCCESS;
    }
    if (known) copy_status(record->result, seen);
    return known ? MPI_SUCCESS : PMPI_Request_get_status(request, flag, &seen);
  });
}

int MPI_Request_free(MPI_Request* request) {
  if (!taken.receives) return PMPI_Request_free(request);
  RecordPtr record =
      *request == MPI_REQUEST_NULL || has_no_records() ? nullptr : take_record(*request);
  if (!record || !record->active ||
      (record->ready && !record->sends && record->has_inner_ended())) {
    if (record && record->inner != MPI_REQUEST_NULL) PMPI_Request_free(&record->inner);
    return PMPI_Request_free(request);
  }
  if (record->ready) {
    PMPI_Request_free(request);  // The idle handle.
    *request = MPI_REQUEST_NULL;
  }
  // It goes on: what MPI still uses stays where it is, and later calls look at what arrives.
  adopt(std::move(record), *request);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request* request) {
  if (!taken.receives) return PMPI_Cancel(request);
  RequestRecord* const record = record_of(*request);
  if (record != nullptr && record->inner_open) return PMPI_Cancel(&record->inner);
  // What is ready can't be cancelled any more, which is no error.
  return record != nullptr && record->ready ? MPI_SUCCESS : PMPI_Cancel(request);
}

}  // extern "C"
