// SPDX-License-Identifier: BSD-3-Clause
// src/memory/bad_reach_of_links.h: a type that another room has as well.
#pragma once

struct Reach {};
