// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_persistent.cpp: persistent collectives of MPI 4 refuse memory of devices.
#include "mpi/counts.h"
#include "mpi/of_mpi_4.h"
#include "mpi/refused.h"

using namespace quadriga::mpi;

namespace {

/// MPI's own function for buffers of the host; a device's are refused by the caller's name.
template <class Function, class... Arguments>
int on_host(const char* name, MPI_Comm comm, bool is_device, Function* function,
            Arguments... arguments) noexcept {
  if (is_refused(name, is_device)) return raise(comm, MPI_ERR_BUFFER);
  return of_mpi_4(comm, function, arguments...);
}

}  // namespace

extern "C" {

OF_MPI_4(Bcast_init, void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm,
         MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(buffer, type), FORM(PMPI_Bcast_init), buffer, count,
                 type, root, comm, info, request);
}

OF_MPI_4(Reduce_init, const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
         int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, type) || touches_device(into, type),
                 FORM(PMPI_Reduce_init), from, into, count, type, op, root, comm, info, request);
}

OF_MPI_4(Allreduce_init, const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
         MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, type) || touches_device(into, type),
                 FORM(PMPI_Allreduce_init), from, into, count, type, op, comm, info, request);
}

OF_MPI_4(Scan_init, const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
         MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, type) || touches_device(into, type),
                 FORM(PMPI_Scan_init), from, into, count, type, op, comm, info, request);
}

OF_MPI_4(Exscan_init, const void* from, void* into, Count count, MPI_Datatype type, MPI_Op op,
         MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, type) || touches_device(into, type),
                 FORM(PMPI_Exscan_init), from, into, count, type, op, comm, info, request);
}

OF_MPI_4(Reduce_scatter_block_init, const void* from, void* into, Count count, MPI_Datatype type,
         MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, type) || touches_device(into, type),
                 FORM(PMPI_Reduce_scatter_block_init), from, into, count, type, op, comm, info,
                 request);
}

OF_MPI_4(Reduce_scatter_init, const void* from, void* into, const Count* counts, MPI_Datatype type,
         MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, type) || touches_device(into, type),
                 FORM(PMPI_Reduce_scatter_init), from, into, counts, type, op, comm, info, request);
}

OF_MPI_4(Gather_init, const void* from, Count send_count, MPI_Datatype send_type, void* into,
         Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
         MPI_Request* request) {
  return on_host(__func__, comm,
                 touches_device(from, send_type) || touches_device(into, type, root, comm),
                 FORM(PMPI_Gather_init), from, send_count, send_type, into, count, type, root, comm,
                 info, request);
}

OF_MPI_4(Gatherv_init, const void* from, Count send_count, MPI_Datatype send_type, void* into,
         const Count* counts, const Distance* places, MPI_Datatype type, int root, MPI_Comm comm,
         MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm,
                 touches_device(from, send_type) || touches_device(into, type, root, comm),
                 FORM(PMPI_Gatherv_init), from, send_count, send_type, into, counts, places, type,
                 root, comm, info, request);
}

OF_MPI_4(Scatter_init, const void* from, Count send_count, MPI_Datatype send_type, void* into,
         Count count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
         MPI_Request* request) {
  return on_host(__func__, comm,
                 touches_device(from, send_type, root, comm) || touches_device(into, type),
                 FORM(PMPI_Scatter_init), from, send_count, send_type, into, count, type, root,
                 comm, info, request);
}

OF_MPI_4(Scatterv_init, const void* from, const Count* send_counts, const Distance* send_places,
         MPI_Datatype send_type, void* into, Count count, MPI_Datatype type, int root,
         MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm,
                 touches_device(from, send_type, root, comm) || touches_device(into, type),
                 FORM(PMPI_Scatterv_init), from, send_counts, send_places, send_type, into, count,
                 type, root, comm, info, request);
}

OF_MPI_4(Allgather_init, const void* from, Count send_count, MPI_Datatype send_type, void* into,
         Count count, MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, send_type) || touches_device(into, type),
                 FORM(PMPI_Allgather_init), from, send_count, send_type, into, count, type, comm,
                 info, request);
}

OF_MPI_4(Allgatherv_init, const void* from, Count send_count, MPI_Datatype send_type, void* into,
         const Count* counts, const Distance* places, MPI_Datatype type, MPI_Comm comm,
         MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, send_type) || touches_device(into, type),
                 FORM(PMPI_Allgatherv_init), from, send_count, send_type, into, counts, places,
                 type, comm, info, request);
}

OF_MPI_4(Alltoall_init, const void* from, Count send_count, MPI_Datatype send_type, void* into,
         Count count, MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, send_type) || touches_device(into, type),
                 FORM(PMPI_Alltoall_init), from, send_count, send_type, into, count, type, comm,
                 info, request);
}

OF_MPI_4(Alltoallv_init, const void* from, const Count* send_counts, const Distance* send_places,
         MPI_Datatype send_type, void* into, const Count* counts, const Distance* places,
         MPI_Datatype type, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, send_type) || touches_device(into, type),
                 FORM(PMPI_Alltoallv_init), from, send_counts, send_places, send_type, into, counts,
                 places, type, comm, info, request);
}

OF_MPI_4(Alltoallw_init, const void* from, const Count* send_counts, const Distance* send_places,
         const MPI_Datatype* send_types, void* into, const Count* counts, const Distance* places,
         const MPI_Datatype* types, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  const auto given = [&] { return parts_of(send_counts, send_places, send_types, partners(comm)); };
  const auto result = [&] { return parts_of(counts, places, types, partners(comm)); };
  return on_host(__func__, comm, touches_device(from, given) || touches_device(into, result),
                 FORM(PMPI_Alltoallw_init), from, send_counts, send_places, send_types, into,
                 counts, places, types, comm, info, request);
}

OF_MPI_4(Neighbor_allgather_init, const void* from, Count send_count, MPI_Datatype send_type,
         void* into, Count count, MPI_Datatype type, MPI_Comm comm, MPI_Info info,
         MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, send_type) || touches_device(into, type),
                 FORM(PMPI_Neighbor_allgather_init), from, send_count, send_type, into, count, type,
                 comm, info, request);
}

OF_MPI_4(Neighbor_allgatherv_init, const void* from, Count send_count, MPI_Datatype send_type,
         void* into, const Count* counts, const Distance* places, MPI_Datatype type, MPI_Comm comm,
         MPI_Info info, MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, send_type) || touches_device(into, type),
                 FORM(PMPI_Neighbor_allgatherv_init), from, send_count, send_type, into, counts,
                 places, type, comm, info, request);
}

OF_MPI_4(Neighbor_alltoall_init, const void* from, Count send_count, MPI_Datatype send_type,
         void* into, Count count, MPI_Datatype type, MPI_Comm comm, MPI_Info info,
         MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, send_type) || touches_device(into, type),
                 FORM(PMPI_Neighbor_alltoall_init), from, send_count, send_type, into, count, type,
                 comm, info, request);
}

OF_MPI_4(Neighbor_alltoallv_init, const void* from, const Count* send_counts,
         const Distance* send_places, MPI_Datatype send_type, void* into, const Count* counts,
         const Distance* places, MPI_Datatype type, MPI_Comm comm, MPI_Info info,
         MPI_Request* request) {
  return on_host(__func__, comm, touches_device(from, send_type) || touches_device(into, type),
                 FORM(PMPI_Neighbor_alltoallv_init), from, send_counts, send_places, send_type,
                 into, counts, places, type, comm, info, request);
}

OF_MPI_4(Neighbor_alltoallw_init, const void* from, const Count* send_counts,
         const MPI_Aint* send_places, const MPI_Datatype* send_types, void* into,
         const Count* counts, const MPI_Aint* places, const MPI_Datatype* types, MPI_Comm comm,
         MPI_Info info, MPI_Request* request) {
  const auto given = [&] {
    return parts_of(send_counts, send_places, send_types, neighbors(comm).destinations);
  };
  const auto result = [&] { return parts_of(counts, places, types, neighbors(comm).sources); };
  return on_host(__func__, comm, touches_device(from, given) || touches_device(into, result),
                 FORM(PMPI_Neighbor_alltoallw_init), from, send_counts, send_places, send_types,
                 into, counts, places, types, comm, info, request);
}

}  // extern "C"
