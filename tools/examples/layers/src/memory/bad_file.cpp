// SPDX-License-Identifier: BSD-3-Clause
// src/memory/bad_file.cpp: what the system answers is an event.
#include <fcntl.h>
