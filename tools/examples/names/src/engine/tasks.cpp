// SPDX-License-Identifier: BSD-3-Clause
// src/engine/tasks.cpp: types of its own, of its room's headers and inside of others.
struct Local {};
class Task::Pool {};
using Clock = int;
