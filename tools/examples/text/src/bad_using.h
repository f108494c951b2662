// SPDX-License-Identifier: BSD-3-Clause
// src/bad_using.h: forces names on its users.
#pragma once

#include <string>

using namespace std;
