// SPDX-License-Identifier: BSD-3-Clause
// src/engine/bad_reach.h: a type that another room has as well.
#pragma once

enum class Reach { near, far };
