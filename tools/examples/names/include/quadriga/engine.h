// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/engine.h: a handle of what is internal, without its content.
#pragma once

struct Task;
class Engine {};
