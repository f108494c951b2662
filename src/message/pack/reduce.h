// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/reduce.h: what is done with an element that arrives where there is one.
#pragma once

#include <quadriga/message_types.h>

#include <cstddef>
#include <functional>
#include <string_view>

namespace quadriga::message {

/// into[i] = into[i] op from[i] for elements of a type that it knows; they may lie at any address.
using Combine = std::function<void(std::byte* into, const std::byte* from, std::size_t elements)>;

/// What MPI's operation does for a type of element. The minimum and maximum of numbers of which one
/// isn't a number is not a number.
/// The operation of a name, as "sum". Errors: invalid_argument with the names that there are.
ReduceOperation reduce_operation_of(std::string_view name);

/// Errors: invalid_argument naming both where the operation means nothing for the type.
Combine combine_of(ReduceOperation operation, ElementType type);

}  // namespace quadriga::message
