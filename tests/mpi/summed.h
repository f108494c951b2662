// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/summed.h: calls on buffers that some ranks have on devices and others on the host; each
// prints sums of what it left in them.
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));
extern void quadriga_emulated_copy(void*, const void*, size_t) __attribute__((weak));

enum { LENGTH = 1 << 14 };
static int rank, size, calls;
static unsigned state;
// Each in memory of a device, or of the host, as the dice say for this rank.
static double *from, *into;
static double host[LENGTH];

static unsigned draw(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 16;
}
static double* place(void) {
  const size_t bytes = LENGTH * sizeof(double);
  const int device = quadriga_emulated_malloc != NULL && (draw() + (unsigned)rank) % 3 != 0;
  return device ? quadriga_emulated_malloc(bytes) : malloc(bytes);
}
static void copy(double* to, const double* of) {
  if (quadriga_emulated_copy != NULL)
    quadriga_emulated_copy(to, of, sizeof host);
  else
    memcpy(to, of, sizeof host);
}
// New buffers for a call: what comes in, and a result that the call leaves in part.
static void begin(void) {
  from = place();
  into = place();
  for (int i = 0; i < LENGTH; ++i) host[i] = (i * 7 + rank * 13 + calls) % 101;
  copy(from, host);
  for (int i = 0; i < LENGTH; ++i) host[i] = -1 - i % 5;
  copy(into, host);
}
static void end(const char* name) {
  copy(host, into);
  double sum = 0, weighted = 0;
  for (int i = 0; i < LENGTH; ++i) {
    sum += host[i];
    weighted += host[i] * (i % 97);
  }
  printf("%d %d %s %.0f %.0f\n", rank, calls++, name, sum, weighted);
}
#define CALL(name, ...) \
  begin();              \
  name(__VA_ARGS__);    \
  end(#name)
// The same of a call that finds in its result what the other buffer holds: this rank's own numbers.
#define CALL_IN_PLACE(name, ...) \
  begin();                       \
  copy(host, from);              \
  copy(into, host);              \
  name(__VA_ARGS__);             \
  end(#name)
