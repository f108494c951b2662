// SPDX-License-Identifier: BSD-3-Clause
// src/memory/directory.h: a header of the room memory.
#pragma once
