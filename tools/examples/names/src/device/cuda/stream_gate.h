// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/stream_gate.h: a kind of device is a room of its own.
#pragma once

class Gate {};
