// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/counts.h: two forms of a function: counts of an int, and large ones (MPI_Send_c).
//
// A function with counts is written once, as FORM(MPI_Send)(const void* buffer, Count count, ...).
// Its file is compiled for the first form by itself, and for the second one within calls_large.cpp.
#pragma once

#include "mpi/native.h"

#ifdef QUADRIGA_LARGE_FORM
#define FORM(function) function##_c
namespace quadriga::mpi {
using Count = MPI_Count;
using Distance = MPI_Aint;     ///< Distances between elements of a buffer.
using PackedSize = MPI_Count;  ///< Of what is packed for other machines.
}  // namespace quadriga::mpi
#else
#define FORM(function) function
namespace quadriga::mpi {
using Count = int;
using Distance = int;
using PackedSize = MPI_Aint;
}  // namespace quadriga::mpi
#endif
