// SPDX-License-Identifier: BSD-3-Clause
// src/message/start.h: the world that a launcher's variables name.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "message/endpoint.h"

namespace quadriga::message {

/// As launch_variables() gives them: those of `quadriga launch`, else torchrun's, else those of an
/// MPI's mpiexec. Without any, a world of this process alone.
///
/// Processes that torchrun or mpiexec started find their token in a file that only this user can
/// read; rank 0 makes it, and removes it when all have come.
/// Errors:  invalid_argument naming the variable that is wrong or absent; unavailable if the ranks
///          are on several hosts, or share no name of their world; those of join().
std::shared_ptr<Endpoint> join_world(const std::map<std::string, std::string>& variables,
                                     const Patience& patience);

}  // namespace quadriga::message
