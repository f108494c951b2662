// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/bad_inside.h: names a type of src.
#pragma once

struct Task;
// A Pool in a comment is none.
Pool* pool();
