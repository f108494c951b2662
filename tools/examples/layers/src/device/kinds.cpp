// SPDX-License-Identifier: BSD-3-Clause
// src/device/kinds.cpp: the table names them.
DeviceKind first() { return DeviceKind::emulated; }
