// SPDX-License-Identifier: BSD-3-Clause
// src/graph/graph.h: a header of the room graph.
#pragma once

#include <cstddef>

#include "memory/directory.h"
