// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/bad_kind_named.cpp: asks which kind of device it is.
bool is_gpu(DeviceKind kind) { return kind == DeviceKind::cuda; }
