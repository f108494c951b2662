// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint.h: uses what stands below it.
#include "message/layout/layout.h"
