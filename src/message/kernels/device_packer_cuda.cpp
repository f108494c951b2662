// SPDX-License-Identifier: BSD-3-Clause
// src/message/kernels/device_packer_cuda.cpp: parts of messages become plans and launches.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <mutex>

#include "device/cuda/cuda_check.h"
#include "message/kernels/list_tables_cuda.h"
#include "message/kernels/pack_cuda.h"
#include "message/pack/device_packer.h"

namespace quadriga::message {
namespace {

using quadriga::cuda::check;
using quadriga::cuda::DeviceGuard;

enum class Task { pack, unpack, reduce };

// One call's plans, those of a kind together.
class Launches {
 public:
  Launches(const PackQueue& queue, Task task, ReduceOperation operation, ElementType type)
      : stream_(static_cast<cudaStream_t>(queue.stream)),
        most_processors_(queue.most_processors),
        task_(task),
        operation_(operation),
        type_(type) {}

  void add(const PackPlan& plan) {
    const cuda::KernelKind kind = task_ == Task::reduce ? cuda::KernelKind{} : cuda::kind_of(plan);
    auto group = std::ranges::find(groups_, kind, &Group::kind);
    if (group == groups_.end()) group = groups_.insert(groups_.end(), {kind, {}});
    group->plans.push_back(plan);
    if (group->plans.size() == cuda::most_plans_a_launch) flush(*group);
  }
  void flush() {
    for (Group& group : groups_) flush(group);
  }
  std::uint64_t launched() const noexcept { return launched_; }

 private:
  struct Group {
    cuda::KernelKind kind;
    std::vector<PackPlan> plans;
  };

  void flush(Group& group) {
    if (group.plans.empty()) return;
    if (task_ == Task::pack)
      cuda::pack(stream_, group.plans, most_processors_);
    else if (task_ == Task::unpack)
      cuda::unpack(stream_, group.plans, most_processors_);
    else
      cuda::unpack_reduce(stream_, group.plans, operation_, type_, most_processors_);
    group.plans.clear();
    ++launched_;
  }

  const cudaStream_t stream_;
  const int most_processors_;
  const Task task_;
  const ReduceOperation operation_;
  const ElementType type_;
  std::vector<Group> groups_;
  std::uint64_t launched_ = 0;
};

class CudaPacker final : public DevicePacker {
 public:
  CudaPacker(int ordinal, std::size_t table_bytes) : ordinal_(ordinal), table_bytes_(table_bytes) {}
  ~CudaPacker() override {
    if (!tables_) return;
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(ordinal_);
    tables_.reset();
    cudaSetDevice(before);
  }

  void pack(std::span<const PackPart> parts, const PackQueue& queue) override {
    for (const PackPart& part : parts) checked_bytes(part);
    run(parts, queue, Task::pack, {});
  }
  void unpack(std::span<const PackPart> parts, const PackQueue& queue) override {
    for (const PackPart& part : parts) check_unpacks(part);
    run(parts, queue, Task::unpack, {});
  }
  void unpack_reduce(std::span<const PackPart> parts, ReduceOperation operation,
                     const PackQueue& queue) override {
    for (const PackPart& part : parts) check_reduces(part, operation);
    // Parts of one type are one launch.
    std::vector<PackPart> rest(parts.begin(), parts.end()), others;
    while (!rest.empty()) {
      const ElementType type = rest.front().layout.elements().type();
      const auto differs = [&](const PackPart& part) {
        return part.layout.elements().type() != type;
      };
      others.clear();
      std::ranges::copy_if(rest, std::back_inserter(others), differs);
      std::erase_if(rest, differs);
      run(rest, queue, Task::reduce, operation);
      rest.swap(others);
    }
  }
  void combine(const CombinePart& part, ReduceOperation operation,
               const PackQueue& queue) override {
    check_combines(part, operation);
    if (part.bytes == 0) return;
    const std::scoped_lock lock(mutex_);
    const DeviceGuard guard(ordinal_);
    cuda::combine(static_cast<cudaStream_t>(queue.stream), part, operation, queue.most_processors);
    counters_.bytes += part.bytes;
    ++counters_.launches;
  }
  void move(const MovePart& part, const PackQueue& queue) override {
    check_moves(part);
    if (part.bytes == 0) return;
    const auto begin = static_cast<std::int64_t>(part.offset);
    const auto plan = move_plan_of(part.from_layout.form(), static_cast<std::byte*>(part.from),
                                   part.to_layout.form(), static_cast<std::byte*>(part.to), begin,
                                   begin + static_cast<std::int64_t>(part.bytes));
    if (!plan) fail(Errc::invalid_argument, "move: such elements are packed and unpacked");
    const std::scoped_lock lock(mutex_);
    const DeviceGuard guard(ordinal_);
    cuda::move(static_cast<cudaStream_t>(queue.stream), *plan, queue.most_processors);
    counters_.bytes += part.bytes;
    ++counters_.launches;
  }
  PackCounters counters() const override {
    const std::scoped_lock lock(mutex_);
    return counters_;
  }

 private:
  void run(std::span<const PackPart> parts, const PackQueue& queue, Task task,
           ReduceOperation operation) {
    if (parts.empty()) return;
    const ElementType type = parts.front().layout.elements().type();
    const std::scoped_lock lock(mutex_);
    const DeviceGuard guard(ordinal_);
    Launches launches(queue, task, operation, type);
    for (const PackPart& part : parts)
      add(part, launches, queue, task == Task::reduce ? static_cast<int>(size_of(type)) : 0);
    launches.flush();
    counters_.launches += launches.launched();
    if (!tables_) return;
    tables_->used(static_cast<cudaStream_t>(queue.stream));
    counters_.table_bytes = tables_->bytes();
    counters_.table_uploads = tables_->uploaded();
  }

  void add(const PackPart& part, Launches& launches, const PackQueue& queue, int element_bytes) {
    const auto bytes = static_cast<std::int64_t>(checked_bytes(part));
    if (bytes == 0) return;
    counters_.bytes += static_cast<std::uint64_t>(bytes);
    const auto begin = static_cast<std::int64_t>(part.offset);
    const PlanRequest request{static_cast<std::byte*>(part.data),
                              static_cast<std::byte*>(part.packed), begin, begin + bytes,
                              element_bytes};
    const Canonical& whole = part.layout.form();
    const bool deep = whole.strides.size() > most_plan_levels;
    const Canonical listed = deep ? with_few_strides(whole) : Canonical{};
    const Canonical& form = deep ? listed : whole;
    if (form.leaf != Leaf::list) return launches.add(plan_of(form, request));
    add_list(form, request, launches, static_cast<cudaStream_t>(queue.stream));
  }

  void add_list(const Canonical& form, const PlanRequest& whole, Launches& launches,
                cudaStream_t stream) {
    if (!tables_) tables_ = std::make_unique<cuda::ListTables>(table_bytes_);
    const bool sliced = form.blocks() == 1;
    const std::uint64_t uploaded = tables_->uploaded();
    const auto use = [&](const RunSlice& slice, const ListTable& table) {
      PlanRequest request = whole;
      if (sliced) {
        request.begin = std::max(whole.begin, slice.begin);
        request.end = std::min(whole.end, slice.end);
        request.packed += request.begin - whole.begin;
      }
      if (request.begin < request.end) launches.add(plan_of(form, request, table, slice.begin));
      if (tables_->uploaded() > uploaded) launches.flush();  // While the next one is prepared.
    };
    if (tables_->for_each(form.list, !sliced, stream, use)) ++counters_.tables_reused;
  }

  const int ordinal_;
  const std::size_t table_bytes_;
  mutable std::mutex mutex_;
  std::unique_ptr<cuda::ListTables> tables_;
  PackCounters counters_;
};

}  // namespace

std::unique_ptr<DevicePacker> DevicePacker::on_cuda(int ordinal, std::size_t table_bytes) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) {
    cudaGetLastError();
    devices = 0;
  }
  if (ordinal < 0 || ordinal >= devices)
    fail(Errc::unavailable,
         fmt::format("packing on a GPU: there is no CUDA device {}, but {}", ordinal, devices));
  return std::make_unique<CudaPacker>(ordinal, table_bytes);
}

}  // namespace quadriga::message
