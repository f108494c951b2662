// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_refused.cpp: buffered sends, and what else of messages refuses memory of devices.
#include "mpi/counts.h"
#include "mpi/refused.h"

using namespace quadriga::mpi;

extern "C" {

int FORM(MPI_Bsend)(const void* from, Count count, MPI_Datatype type, int to, int tag,
                    MPI_Comm comm) {
  if (is_refused(__func__, touches_device(from, type))) return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Bsend)(from, count, type, to, tag, comm);
}

int FORM(MPI_Buffer_attach)(void* buffer, Count size) {
  if (is_refused(__func__, on_device(buffer))) return raise(MPI_COMM_WORLD, MPI_ERR_BUFFER);
  return FORM(PMPI_Buffer_attach)(buffer, size);
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
int FORM(MPI_Comm_attach_buffer)(MPI_Comm comm, void* buffer, Count size) {
  if (is_refused(__func__, on_device(buffer))) return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Comm_attach_buffer)(comm, buffer, size);
}

int FORM(MPI_Session_attach_buffer)(MPI_Session session, void* buffer, Count size) {
  if (is_refused(__func__, on_device(buffer))) {
    PMPI_Session_call_errhandler(session, MPI_ERR_BUFFER);
    return MPI_ERR_BUFFER;
  }
  return FORM(PMPI_Session_attach_buffer)(session, buffer, size);
}
#endif

int FORM(MPI_Ibsend)(const void* from, Count count, MPI_Datatype type, int to, int tag,
                     MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type))) return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Ibsend)(from, count, type, to, tag, comm, request);
}

int FORM(MPI_Bsend_init)(const void* from, Count count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type))) return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Bsend_init)(from, count, type, to, tag, comm, request);
}

int FORM(MPI_Reduce_local)(const void* from, void* into, Count count, MPI_Datatype type,
                           MPI_Op op) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, type)))
    return raise(MPI_COMM_WORLD, MPI_ERR_BUFFER);
  return FORM(PMPI_Reduce_local)(from, into, count, type, op);
}

int FORM(MPI_Pack_external)(const char* format, const void* from, Count count, MPI_Datatype type,
                            void* into, PackedSize size, PackedSize* position) {
  if (is_refused(__func__, touches_device(from, type) || on_device(into)))
    return raise(MPI_COMM_WORLD, MPI_ERR_BUFFER);
  return FORM(PMPI_Pack_external)(format, from, count, type, into, size, position);
}

int FORM(MPI_Unpack_external)(const char* format, const void* from, PackedSize size,
                              PackedSize* position, void* into, Count count, MPI_Datatype type) {
  if (is_refused(__func__, on_device(from) || touches_device(into, type)))
    return raise(MPI_COMM_WORLD, MPI_ERR_BUFFER);
  return FORM(PMPI_Unpack_external)(format, from, size, position, into, count, type);
}

}  // extern "C"
