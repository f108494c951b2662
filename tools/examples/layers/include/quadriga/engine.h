// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/engine.h: a header of the room graph.
#pragma once
