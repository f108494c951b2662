// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/bad_carries_out.cpp: decisions must not know who carries them out.
#include "engine/driver.h"
