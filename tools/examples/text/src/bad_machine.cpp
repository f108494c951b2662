// SPDX-License-Identifier: BSD-3-Clause
// src/bad_machine.cpp: names a place on one machine.
const char* bad() { return "/home/me/data"; }
