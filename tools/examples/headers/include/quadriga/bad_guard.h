// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/bad_guard.h: has no guard.
struct Bad {};
