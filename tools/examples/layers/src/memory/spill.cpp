// SPDX-License-Identifier: BSD-3-Clause
// src/memory/spill.cpp: maps buffers; what was refused is logged.
#include <fcntl.h>
