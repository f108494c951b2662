// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/bad_cost.h: costs far more than a public header may.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <locale>
#include <map>
#include <memory_resource>
#include <random>
#include <ranges>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <valarray>
