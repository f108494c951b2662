// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/matrix.h: a name that rooms share for a reason.
#pragma once

class Matrix {};
