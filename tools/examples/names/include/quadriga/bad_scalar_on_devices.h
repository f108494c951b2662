// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/bad_scalar_on_devices.h: a type that another room's public header has as well.
#pragma once

class Scalar {
 public:
  Scalar() = default;
};
