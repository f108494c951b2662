// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/host.cpp: the host's cores are known to all.
// DeviceKind::cuda in a comment is no question.
bool is_host(DeviceKind kind) { return kind == DeviceKind::cpu; }
