// SPDX-License-Identifier: BSD-3-Clause
// src/bad_environment.cpp: reads the environment.
#include <cstdlib>

const char* bad() { return std::getenv("HOME"); }
