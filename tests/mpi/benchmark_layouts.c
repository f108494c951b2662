// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/benchmark_layouts.c: the layouts of DDTBench's applications (Schneider, Gerstenberger,
// Hoefler, Micro-applications for communication data access patterns and MPI datatypes, EuroMPI
// 2012, table 1) and of OSU's benchmarks of messages (contiguous, and vectors), of sizes of our own.
//
// Each rank sends each layout around a ring, to the same layout and to bytes side by side, and
// prints a sum of what came. With an argument rank 0 says microseconds on standard error.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));
extern void quadriga_emulated_copy(void*, const void*, size_t) __attribute__((weak));

enum { BYTES = 1 << 20, POINTS = 600 };
static int points[POINTS];  // Rising, at irregular distances.

static MPI_Datatype vector(int count, int length, int stride, MPI_Datatype of) {
  MPI_Datatype made;
  MPI_Type_vector(count, length, stride, of, &made);
  return made;
}
static MPI_Datatype at_points(int length, MPI_Datatype of) {
  int places[POINTS];
  MPI_Datatype made;
  for (int i = 0; i < POINTS; ++i) places[i] = points[i] * length;
  MPI_Type_create_indexed_block(POINTS, length, places, of, &made);
  return made;
}
static MPI_Datatype together(int count, const MPI_Aint* places, MPI_Datatype* types) {
  const int ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  MPI_Datatype made;
  MPI_Type_create_struct(count, ones, places, types, &made);
  for (int i = 0; i < count; ++i) MPI_Type_free(&types[i]);
  return made;
}

// Finite volumes: five numbers a cell, planes in x and y.
static MPI_Datatype nas_lu_x(void) { return vector(1, 5 * 64, 1, MPI_DOUBLE); }
static MPI_Datatype nas_lu_y(void) { return vector(64, 5, 5 * 64, MPI_DOUBLE); }
// Faces of a cube of 48 numbers with its halo.
static MPI_Datatype nas_mg_x(void) {
  MPI_Datatype lines = vector(46, 1, 48, MPI_DOUBLE), made;
  MPI_Type_create_hvector(46, 1, 48 * 48 * 8, lines, &made);
  MPI_Type_free(&lines);
  return made;
}
static MPI_Datatype nas_mg_y(void) { return vector(46, 46, 48 * 48, MPI_DOUBLE); }
static MPI_Datatype nas_mg_z(void) { return vector(46, 46, 48, MPI_DOUBLE); }
// Lattice of four dimensions, vectors of three complex numbers, every other site.
static MPI_Datatype milc_zdown(void) { return vector(16, 6 * 32, 6 * 32 * 16, MPI_FLOAT); }
// Weather: halos of arrays of two and three dimensions at once.
static MPI_Datatype wrf_x(void) {
  const int plane[2] = {64, 80}, of_plane[2] = {60, 3}, at[3] = {2, 4, 5};
  const int cube[3] = {30, 16, 80}, of_cube[3] = {26, 12, 3};
  const MPI_Aint places[3] = {0, 64 * 80 * 4, 2 * 64 * 80 * 4};
  MPI_Datatype types[3];
  MPI_Type_create_subarray(2, plane, of_plane, at, MPI_ORDER_C, MPI_FLOAT, &types[0]);
  MPI_Type_create_subarray(2, plane, of_plane, at, MPI_ORDER_C, MPI_FLOAT, &types[1]);
  MPI_Type_create_subarray(3, cube, of_cube, at, MPI_ORDER_C, MPI_FLOAT, &types[2]);
  return together(3, places, types);
}
// Seismic waves: points of an irregular boundary, one number or three each, of one field or two.
static MPI_Datatype specfem_oc(void) { return at_points(1, MPI_FLOAT); }
static MPI_Datatype specfem_cm(void) {
  const MPI_Aint places[2] = {0, BYTES / 2};
  MPI_Datatype types[2] = {at_points(3, MPI_FLOAT), at_points(3, MPI_FLOAT)};
  return together(2, places, types);
}
static MPI_Datatype specfem_mt(void) { return vector(120, 3, 90, MPI_FLOAT); }
// Particles: positions, charges and four numbers each in arrays of their own.
static MPI_Datatype lammps_full(void) {
  const MPI_Aint part = BYTES / 8,
                 places[6] = {0, 3 * part, 4 * part, 5 * part, 6 * part, 7 * part};
  MPI_Datatype types[6] = {at_points(3, MPI_DOUBLE), at_points(1, MPI_DOUBLE),
                           at_points(1, MPI_INT),    at_points(1, MPI_INT),
                           at_points(1, MPI_INT),    at_points(1, MPI_INT)};
  return together(6, places, types);
}
// A matrix of complex numbers that arrives transposed: its columns one after the other.
static MPI_Datatype fft2(void) {
  MPI_Datatype number, column, near, made;
  MPI_Type_contiguous(2, MPI_DOUBLE, &number);
  column = vector(64, 1, 96, number);
  MPI_Type_create_resized(column, 0, 16, &near);
  MPI_Type_contiguous(24, near, &made);
  MPI_Type_free(&number);
  MPI_Type_free(&column);
  MPI_Type_free(&near);
  return made;
}
static MPI_Datatype osu_small(void) { return vector(1, 8, 1, MPI_CHAR); }
static MPI_Datatype osu_large(void) { return vector(1, 1 << 18, 1, MPI_CHAR); }
static MPI_Datatype osu_vector(void) { return vector(8192, 16, 32, MPI_CHAR); }

static const struct {
  const char* name;
  MPI_Datatype (*make)(void);
} layouts[] = {
    {"NAS_LU_x", nas_lu_x},
    {"NAS_LU_y", nas_lu_y},
    {"NAS_MG_x", nas_mg_x},
    {"NAS_MG_y", nas_mg_y},
    {"NAS_MG_z", nas_mg_z},
    {"MILC_zdown", milc_zdown},
    {"WRF_x", wrf_x},
    {"SPECFEM3D_oc", specfem_oc},
    {"SPECFEM3D_cm", specfem_cm},
    {"SPECFEM3D_mt", specfem_mt},
    {"LAMMPS_full", lammps_full},
    {"FFT2", fft2},
    {"OSU of 8 bytes", osu_small},
    {"OSU of 256 KiB", osu_large},
    {"OSU vector", osu_vector},
};

static void* reserve(void) {
  return quadriga_emulated_malloc != NULL ? quadriga_emulated_malloc(BYTES) : malloc(BYTES);
}
static void copy(void* to, const void* from) {
  if (quadriga_emulated_copy != NULL)
    quadriga_emulated_copy(to, from, BYTES);
  else
    memcpy(to, from, BYTES);
}
static uint64_t sum_of(const unsigned char* bytes) {
  uint64_t sum = 0;
  for (int i = 0; i < BYTES; ++i) sum = sum * 31 + bytes[i];
  return sum;
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 1; i < POINTS; ++i) points[i] = points[i - 1] + 1 + i * i % 5;
  unsigned char *host = malloc(BYTES), *sent = reserve(), *same = reserve(), *flat = reserve();
  for (size_t each = 0; each < sizeof layouts / sizeof *layouts; ++each) {
    MPI_Datatype type = layouts[each].make();
    MPI_Type_commit(&type);
    for (int i = 0; i < BYTES; ++i) host[i] = (unsigned char)(i * 7 + i / 251 + rank);
    copy(sent, host);
    memset(host, 0, BYTES);
    copy(same, host);
    copy(flat, host);
    const double begin = MPI_Wtime();
    MPI_Request requests[4];
    MPI_Irecv(same, 1, type, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(flat, BYTES, MPI_BYTE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(sent, 1, type, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(sent, 1, type, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    const double took = MPI_Wtime() - begin;
    if (argc > 1 && rank == 0) fprintf(stderr, "%s: %.0f us\n", layouts[each].name, took * 1e6);
    MPI_Type_free(&type);
    copy(host, same);
    const uint64_t spread = sum_of(host);
    copy(host, flat);
    printf("%d %s: %016llx %016llx\n", rank, layouts[each].name, (unsigned long long)spread,
           (unsigned long long)sum_of(host));
  }
  MPI_Finalize();
  return 0;
}
