// SPDX-License-Identifier: BSD-3-Clause
// src/device/bad_kind_beside.cpp: beside the table, but not the table.
bool stores(DeviceKind kind) { return kind != DeviceKind::cpu && kind == DeviceKind::file; }
