// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/bad_vendor.cpp: a vendor's header outside its place.
#include <cuda_runtime.h>
