// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policy_registry.cpp: any thread may register a policy.
#include <mutex>
