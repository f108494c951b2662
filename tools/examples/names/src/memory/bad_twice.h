// SPDX-License-Identifier: BSD-3-Clause
// src/memory/bad_twice.h: a header of this name is in another room.
#pragma once
