// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/bad_scalar.h: a type that another room's public header has as well.
#pragma once

struct Scalar {};
