// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/bad_iostream.h: pulls in what costs every user.
#pragma once

#include <iostream>
