// SPDX-License-Identifier: BSD-3-Clause
// src/message/bad_sibling.cpp: uses a sibling.
#include "memory/directory.h"
