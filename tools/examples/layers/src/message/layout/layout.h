// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/layout.h: stands below all else of its room.
