// SPDX-License-Identifier: BSD-3-Clause
// src/device/bad_header_of_kind.h: a header of the room that knows one kind.
#pragma once

#include "device/emulated/queue.h"
