// SPDX-License-Identifier: BSD-3-Clause
// src/device/emulated/queue.h: a header of one kind of device.
#pragma once
