// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/bad_unlisted.h: a public header that no room lists.
#pragma once
