// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/bad_locks.cpp: decisions are made by one thread at a time.
#include <mutex>
