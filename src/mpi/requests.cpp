// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/requests.cpp: a table by open addressing, without marks of what was removed.
#include "mpi/requests.h"

#include <algorithm>
#include <iterator>

namespace quadriga::mpi {
namespace {

constexpr std::size_t most_spare = 1024;

// All of this process: programs may call MPI after main().
Requests& requests() noexcept {
  static auto* const made = new Requests;
  return *made;
}
void set_records(std::size_t count) noexcept { records.store(count, std::memory_order_relaxed); }

struct Adopted {
  RecordPtr record;
  MPI_Request request;
};
std::vector<Adopted>& orphans() {
  static auto* const made = new std::vector<Adopted>;
  return *made;
}

// Whether it has ended by now.
bool has_ended(Adopted& each) {
  if (each.request != MPI_REQUEST_NULL) {
    int flag = 0;
    MPI_Status status{};
    const bool persistent = each.record->persistent;
    PMPI_Test(&each.request, &flag, &status);
    if (flag == 0) return false;
    if (!each.record->sends && !each.record->finished) each.record->in.finish(status);
    if (persistent && each.request != MPI_REQUEST_NULL) PMPI_Request_free(&each.request);
  }
  if (!each.record->is_settled()) return false;
  if (each.record->inner != MPI_REQUEST_NULL) PMPI_Request_free(&each.record->inner);
  return true;
}

}  // namespace

bool RequestRecord::has_inner_ended() noexcept {
  if (!inner_open) return has_pair_ended();
  int ended = 0;
  code = PMPI_Test(&inner, &ended, &result);
  inner_open = ended == 0 && code == MPI_SUCCESS;
  if (!inner_open && offer) offer->begin_patience();
  return !inner_open;
}

bool RequestRecord::is_settled() {
  return !active || (has_inner_ended() && (!offer || offer->is_over()));
}

std::mutex TableLock::mutex;
std::atomic<std::size_t> records{0};

std::size_t Requests::place_of(std::uint64_t key) const noexcept {
  std::size_t at = home(key);
  while (slots_[at].key != key && slots_[at].key != 0) at = (at + 1) & (slots_.size() - 1);
  return at;
}

void Requests::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  --shift_;
  for (Slot& each : old)
    if (each.key != 0) slots_[place_of(each.key)] = std::move(each);
}

void Requests::add(MPI_Request request, RecordPtr record) {
  const std::size_t used = records.load(std::memory_order_relaxed);
  if ((used + 1) * 2 > slots_.size()) grow();
  Slot& slot = slots_[place_of(number_of(request))];
  if (slot.key == 0) set_records(used + 1);
  slot = {number_of(request), std::move(record)};
}

RequestRecord* Requests::find(MPI_Request request) const noexcept {
  return slots_[place_of(number_of(request))].record.get();
}

RecordPtr Requests::remove(MPI_Request request) noexcept {
  std::size_t hole = place_of(number_of(request));
  if (slots_[hole].key == 0) return nullptr;
  RecordPtr found = std::move(slots_[hole].record);
  slots_[hole].key = 0;
  set_records(records.load(std::memory_order_relaxed) - 1);
  // Those behind that would no longer be found move up.
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = (hole + 1) & mask; slots_[at].key != 0; at = (at + 1) & mask) {
    const std::size_t wanted = home(slots_[at].key);
    if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
    slots_[hole] = std::move(slots_[at]);
    slots_[at].key = 0;
    hole = at;
  }
  return found;
}

RecordPtr Requests::make() {
  if (spare_.empty()) return std::make_unique<RequestRecord>();
  RecordPtr made = std::move(spare_.back());
  spare_.pop_back();
  return made;
}

void Requests::recycle(RecordPtr record) noexcept {
  if (spare_.size() >= most_spare) return;
  std::destroy_at(record.get());
  std::construct_at(record.get());
  spare_.push_back(std::move(record));
}

RequestRecord* record_of(MPI_Request request) noexcept {
  if (has_no_records() || request == MPI_REQUEST_NULL) return nullptr;
  const TableLock lock;
  return requests().find(request);
}

void keep_record(MPI_Request request, RecordPtr record) {
  const TableLock lock;
  requests().add(request, std::move(record));
}

RecordPtr take_record(MPI_Request request) noexcept {
  const TableLock lock;
  return requests().remove(request);
}

RecordPtr new_record() {
  const TableLock lock;
  return requests().make();
}

void recycle(RecordPtr record) noexcept {
  const TableLock lock;
  requests().recycle(std::move(record));
}

std::atomic<int> adopted{0};

void adopt(RecordPtr record, MPI_Request request) {
  const TableLock lock;
  orphans().push_back({std::move(record), request});
  adopted.store(static_cast<int>(orphans().size()), std::memory_order_relaxed);
}

void look_after_adopted() noexcept {
  std::vector<Adopted> looked_at;
  {
    const TableLock lock;
    looked_at.swap(orphans());
  }
  // Without the lock: parts of a pair have records of their own.
  try {
    std::erase_if(looked_at, has_ended);
  } catch (...) {
    code_of_exception();
    looked_at.clear();
  }
  const TableLock lock;
  std::ranges::move(looked_at, std::back_inserter(orphans()));
  adopted.store(static_cast<int>(orphans().size()), std::memory_order_relaxed);
}

}  // namespace quadriga::mpi
