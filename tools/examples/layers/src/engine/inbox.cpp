// SPDX-License-Identifier: BSD-3-Clause
// src/engine/inbox.cpp: threads meet here.
#include <mutex>
#include <thread>
