// SPDX-License-Identifier: BSD-3-Clause
// bad_export.cpp: defines a name outside of our namespace, seen by everyone.
int helper() { return 1; }

namespace quadriga {
int of_ours() { return helper(); }
}  // namespace quadriga
