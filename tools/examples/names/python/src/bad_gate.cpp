// SPDX-License-Identifier: BSD-3-Clause
// python/src/bad_gate.cpp: a type of its own, called as that of another room's header.
class Gate final {};
