// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_send.cpp: MPI's sends, and those with a receive beside them.
//
// Where nobody sends envelopes each call is MPI's at once, before anything is put in order for it.
#include "mpi/counts.h"
#include "mpi/of_mpi_4.h"
#include "mpi/receiving.h"

using namespace quadriga::mpi;

extern "C" {

int FORM(MPI_Send)(const void* buffer, Count count, MPI_Datatype datatype, int destination, int tag,
                   MPI_Comm comm) {
  if (!taken.receives) return FORM(PMPI_Send)(buffer, count, datatype, destination, tag, comm);
  return send(Function::send, SendMode::standard,
              {buffer, count, datatype, destination, tag, comm});
}

int FORM(MPI_Ssend)(const void* buffer, Count count, MPI_Datatype datatype, int destination,
                    int tag, MPI_Comm comm) {
  if (!taken.receives) return FORM(PMPI_Ssend)(buffer, count, datatype, destination, tag, comm);
  return send(Function::ssend, SendMode::synchronous,
              {buffer, count, datatype, destination, tag, comm});
}

int FORM(MPI_Rsend)(const void* buffer, Count count, MPI_Datatype datatype, int destination,
                    int tag, MPI_Comm comm) {
  if (!taken.receives) return FORM(PMPI_Rsend)(buffer, count, datatype, destination, tag, comm);
  return send(Function::rsend, SendMode::ready, {buffer, count, datatype, destination, tag, comm});
}

int FORM(MPI_Isend)(const void* buffer, Count count, MPI_Datatype datatype, int destination,
                    int tag, MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives)
    return FORM(PMPI_Isend)(buffer, count, datatype, destination, tag, comm, request);
  return isend(Function::isend, SendMode::standard,
               {buffer, count, datatype, destination, tag, comm}, request);
}

int FORM(MPI_Issend)(const void* buffer, Count count, MPI_Datatype datatype, int destination,
                     int tag, MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives)
    return FORM(PMPI_Issend)(buffer, count, datatype, destination, tag, comm, request);
  return isend(Function::issend, SendMode::synchronous,
               {buffer, count, datatype, destination, tag, comm}, request);
}

int FORM(MPI_Irsend)(const void* buffer, Count count, MPI_Datatype datatype, int destination,
                     int tag, MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives)
    return FORM(PMPI_Irsend)(buffer, count, datatype, destination, tag, comm, request);
  return isend(Function::irsend, SendMode::ready, {buffer, count, datatype, destination, tag, comm},
               request);
}

int FORM(MPI_Send_init)(const void* buffer, Count count, MPI_Datatype datatype, int destination,
                        int tag, MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives)
    return FORM(PMPI_Send_init)(buffer, count, datatype, destination, tag, comm, request);
  return send_init(Function::send_init, SendMode::standard,
                   {buffer, count, datatype, destination, tag, comm}, request);
}

int FORM(MPI_Ssend_init)(const void* buffer, Count count, MPI_Datatype datatype, int destination,
                         int tag, MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives)
    return FORM(PMPI_Ssend_init)(buffer, count, datatype, destination, tag, comm, request);
  return send_init(Function::ssend_init, SendMode::synchronous,
                   {buffer, count, datatype, destination, tag, comm}, request);
}

int FORM(MPI_Rsend_init)(const void* buffer, Count count, MPI_Datatype datatype, int destination,
                         int tag, MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives)
    return FORM(PMPI_Rsend_init)(buffer, count, datatype, destination, tag, comm, request);
  return send_init(Function::rsend_init, SendMode::ready,
                   {buffer, count, datatype, destination, tag, comm}, request);
}

int FORM(MPI_Sendrecv)(const void* from, Count send_count, MPI_Datatype send_type, int destination,
                       int send_tag, void* into, Count count, MPI_Datatype datatype, int source,
                       int tag, MPI_Comm comm, MPI_Status* status) {
  if (!taken.receives)
    return FORM(PMPI_Sendrecv)(from, send_count, send_type, destination, send_tag, into, count,
                               datatype, source, tag, comm, status);
  const SendCall call{from, send_count, send_type, destination, send_tag, comm};
  const ReceiveCall receive{into, count, datatype, source, tag, comm};
  return sendrecv(Function::sendrecv, call, receive, status);
}

int FORM(MPI_Sendrecv_replace)(void* buffer, Count count, MPI_Datatype datatype, int destination,
                               int send_tag, int source, int tag, MPI_Comm comm,
                               MPI_Status* status) {
  if (!taken.receives)
    return FORM(PMPI_Sendrecv_replace)(buffer, count, datatype, destination, send_tag, source, tag,
                                       comm, status);
  return sendrecv_replace({buffer, count, datatype, destination, send_tag, comm}, source, tag,
                          status);
}

OF_MPI_4(Isendrecv, const void* from, Count send_count, MPI_Datatype send_type, int destination,
         int send_tag, void* into, Count count, MPI_Datatype datatype, int source, int tag,
         MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives)
    return of_mpi_4(comm, FORM(PMPI_Isendrecv), from, send_count, send_type, destination, send_tag,
                    into, count, datatype, source, tag, comm, request);
  return isendrecv({from, send_count, send_type, destination, send_tag, comm},
                   {into, count, datatype, source, tag, comm}, request);
}

OF_MPI_4(Isendrecv_replace, void* buffer, Count count, MPI_Datatype datatype, int destination,
         int send_tag, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives)
    return of_mpi_4(comm, FORM(PMPI_Isendrecv_replace), buffer, count, datatype, destination,
                    send_tag, source, tag, comm, request);
  return isendrecv_replace({buffer, count, datatype, destination, send_tag, comm}, source, tag,
                           request);
}

}  // extern "C"
