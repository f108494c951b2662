// SPDX-License-Identifier: BSD-3-Clause
// src/message/collective_faults.h: what one rank alone can see that keeps it from a collective.
#pragma once

#include <string>

#include "message/transfer.h"

namespace quadriga::message {

/// Why a whole isn't made of such a part for each rank; empty if it is. So are the others.
std::string part_fault(const MessageBuffer& whole, const MessageBuffer& part, int ranks);
std::string overlap_fault(const MessageBuffer& into);
std::string root_fault(int root, int size);
/// The first that isn't empty.
std::string first_of(std::string a, std::string b);

}  // namespace quadriga::message
