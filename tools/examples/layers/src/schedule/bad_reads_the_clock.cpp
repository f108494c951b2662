// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/bad_reads_the_clock.cpp: times are parts of events.
#include <chrono>
