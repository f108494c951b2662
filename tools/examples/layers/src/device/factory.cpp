// SPDX-License-Identifier: BSD-3-Clause
// src/device/factory.cpp: makes every kind of device, and may.
#include "device/emulated/queue.h"
