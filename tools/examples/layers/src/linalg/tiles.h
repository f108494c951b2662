// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tiles.h: a header of the room linalg.
#pragma once
