// SPDX-License-Identifier: BSD-3-Clause
// src/device/cpu/bad_kind.cpp: uses another kind of device.
#include "device/emulated/queue.h"
