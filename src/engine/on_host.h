// SPDX-License-Identifier: BSD-3-Clause
// src/engine/on_host.h: what the library asks about data for the host: access by memory, what comes
// before an access, and where content is.
//
// All functions take locks of the engine's and hold none when they return; any thread may call
// them. Errors: in a forked child.
#pragma once

#include <quadriga/data.h>
#include <quadriga/handles.h>
#include <quadriga/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/hold.h"

namespace quadriga {

class Engine;

/// The host's access to whatever is registered in some memory, as Engine::on_host(). Where a
/// region is written, what is registered is updated. `names_lost`: if a failed task should have
/// written what is read, LacksResult names it, and the failure is still to be told by waits.
HostAccess hold_regions(Engine& engine, std::span<const HeldRegion> regions, double timeout = -1,
                        bool names_lost = false);
/// Whether something is registered in some memory.
bool is_registered(const Engine& engine, const Region& region);

/// Whether tasks that overwrite these data needn't follow those before (renaming.h).
bool has_names(const Engine& engine, const Data& data);
/// The number of the task that wrote their newest content, or will; 0: there was none.
std::uint64_t newest_writer(const Engine& engine, const Data& data);
/// The numbers of pending tasks that on_host() of these data has to follow, as far as is known.
std::vector<std::uint64_t> before_host(const Engine& engine, const Data& data, Access access);

/// Whether home holds what the tasks submitted so far make of it, and they have ended; it may
/// still be on its way by a copy.
bool is_home(const Engine& engine, const Data& data);
/// Whether the newest content of private data, whose tasks have ended, has arrived at home.
bool has_come_home(const Engine& engine, const Data& data);
/// Engine::wait() for a task, whose data stay where they are.
void wait_for_end(Engine& engine, const Future& task, double timeout);
/// What Engine::wait() does for a task that has ended: the program may read and write the memory of
/// data that no pending task uses.
void bring_ended_home(Engine& engine, double timeout);
/// Whether that has something to do in this thread; false in a forked child.
bool has_lingering(const Engine& engine) noexcept;
/// Brings home what ended tasks wrote, while nothing is submitted; throws losses not told so far.
void bring_all_home(Engine& engine);

}  // namespace quadriga
