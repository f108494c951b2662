// SPDX-License-Identifier: BSD-3-Clause
// src/engine/task.h: internal types.
#pragma once

struct Task {};
class Pool final {
 public:
  class Part {};
};
