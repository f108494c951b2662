// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/together.cpp: asks the ranks of a communicator, and runs their collective.
#include "mpi/together.h"

#include "mpi/device_buffers.h"
#include "mpi/incoming.h"
#include "mpi/world.h"

namespace quadriga::mpi {
namespace {

using message::CommunicatorCore;
using message::ElementType;
using message::MessageBuffer;
using message::ReduceOperation;

// What MPI's operation is for us; empty: MPI combines.
std::optional<ReduceOperation> operation_of(MPI_Op operation) noexcept {
  if (operation == MPI_SUM) return ReduceOperation::sum;
  if (operation == MPI_PROD) return ReduceOperation::prod;
  if (operation == MPI_MIN) return ReduceOperation::min;
  if (operation == MPI_MAX) return ReduceOperation::max;
  return std::nullopt;
}

// Numbers of the language that all of these operations combine.
std::optional<ElementType> number_type(MPI_Datatype type) noexcept {
  if (type == MPI_FLOAT) return ElementType::float32;
  if (type == MPI_DOUBLE) return ElementType::float64;
  if (type == MPI_INT || type == MPI_INT32_T) return ElementType::int32;
  if (type == MPI_LONG || type == MPI_LONG_LONG || type == MPI_INT64_T) return ElementType::int64;
  if (type == MPI_UNSIGNED || type == MPI_UINT32_T) return ElementType::uint32;
  if (type == MPI_UNSIGNED_LONG || type == MPI_UNSIGNED_LONG_LONG || type == MPI_UINT64_T)
    return ElementType::uint64;
  return std::nullopt;
}

// Whether the ranks are asked; the same on all of them.
bool may_ask(Function function, std::int64_t bytes, MPI_Comm comm) noexcept {
  if (bytes < least_asked_bytes || !world->is_shared(function)) return false;
  // Communicators that threads use at once would have to number their collectives apart.
  if (taken.locked && comm != MPI_COMM_WORLD) return false;
  return is_whole(comm);
}

// Ours for the ranks of a communicator, if each says that it passes memory for it.
CommunicatorCore* agreed(MPI_Comm comm, bool mine) {
  const int said[2] = {mine ? 1 : 0, -world->next_group};
  int heard[2] = {0, 0};  // Whether all do, and the most that a next group is.
  if (PMPI_Allreduce(said, heard, 2, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS) return nullptr;
  return heard[0] != 0 ? &core_of(comm, -heard[1]) : nullptr;
}

bool is_ours(const void* buffer, std::int64_t count, MPI_Datatype type) {
  return world->switches.host || is_on_device(buffer, count, type);
}

}  // namespace

std::optional<int> broadcast_together(void* buffer, std::int64_t count, MPI_Datatype type, int root,
                                      MPI_Comm comm) {
  if (count <= 0 || type == MPI_DATATYPE_NULL || root < 0 || root >= world->core->size())
    return std::nullopt;
  if (!may_ask(Function::bcast, bytes_of(type) * count, comm)) return std::nullopt;
  const MessageBuffer place = buffer_at(buffer, datatype_of(type)->times(count));
  CommunicatorCore* const core = agreed(comm, is_ours(buffer, count, type));
  if (core == nullptr) return std::nullopt;
  core->broadcast(place, root, {});
  quadriga::mpi::count(world->counters.together);
  return MPI_SUCCESS;
}

std::optional<int> all_reduce_together(const void* from, void* into, std::int64_t count,
                                       MPI_Datatype type, MPI_Op operation, MPI_Comm comm) {
  const auto combines = operation_of(operation);
  const auto number = number_type(type);
  if (count <= 0 || !combines || !number) return std::nullopt;
  if (!may_ask(Function::allreduce, bytes_of(type) * count, comm)) return std::nullopt;
  const auto layout = message::Layout::contiguous(count, *number);
  const void* const given = from == MPI_IN_PLACE ? into : from;
  const MessageBuffer sent = buffer_at(given, layout), result = buffer_at(into, layout);
  const bool mine = is_ours(given, count, type) && is_ours(into, count, type);
  CommunicatorCore* const core = agreed(comm, mine);
  if (core == nullptr) return std::nullopt;
  core->all_reduce(sent, result, *combines, {});
  quadriga::mpi::count(world->counters.together);
  return MPI_SUCCESS;
}

}  // namespace quadriga::mpi
