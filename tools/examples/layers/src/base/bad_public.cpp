// SPDX-License-Identifier: BSD-3-Clause
// src/base/bad_public.cpp: uses a public header of a room to its right.
#include <quadriga/engine.h>
