// SPDX-License-Identifier: BSD-3-Clause
// src/memory/pools.h: a name inside of a class is that class's own.
#pragma once

class Pools {
  struct Task {};
};
class Engine;
