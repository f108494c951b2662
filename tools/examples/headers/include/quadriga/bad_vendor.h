// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/bad_vendor.h: pulls in a heavy library, one step down.
#pragma once

#include "../inner/bad_format.h"
