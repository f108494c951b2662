// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver.h: what stands to the right of decisions.
#pragma once

#include "graph/graph.h"
