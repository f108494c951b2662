// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/of_mpi_4.h: functions of MPI 4 that an older MPI's header lacks.
//
// Open MPI 5 has them, but runs the library that is built with the header of 4.1, which hasn't.
#pragma once

#include "mpi/incoming.h"

// Begins the definition of MPI_name(arguments), which calls PMPI_name by of_mpi_4(): null where
// there is none.
#ifdef QUADRIGA_WIDE_COUNTS
#define OF_MPI_4(name, ...) int FORM(MPI_##name)(__VA_ARGS__)
#else
#define OF_MPI_4(name, ...)                           \
  int PMPI_##name(__VA_ARGS__) __attribute__((weak)); \
  int MPI_##name(__VA_ARGS__)
#endif

namespace quadriga::mpi {

/// MPI's own function, or its error that there is none.
template <class Function, class... Arguments>
int of_mpi_4(MPI_Comm comm, Function* function, Arguments... arguments) noexcept {
  return function != nullptr ? function(arguments...) : raise(comm, MPI_ERR_UNSUPPORTED_OPERATION);
}

}  // namespace quadriga::mpi
