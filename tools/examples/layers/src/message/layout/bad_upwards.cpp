// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/bad_upwards.cpp: layouts know nothing of how they travel.
#include "message/endpoint.h"
