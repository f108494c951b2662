// SPDX-License-Identifier: BSD-3-Clause
// src/graph/graph.h: a header of the room graph.
#pragma once

#include <quadriga/engine.h>

#include "memory/directory.h"
