// SPDX-License-Identifier: BSD-3-Clause
// src/device/preparation.h: prepares libraries for a device's streams before its memory is
// allocated.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/types.h>

#include <optional>

namespace quadriga {

/// Who computes with libraries on devices of a kind says how their handles and workspaces are made:
/// by a variant without operands, which is called for each compute stream of a device while none of
/// its memory is taken yet, where memory is scarce (Backend::prepare). A kind has one; an empty one
/// takes it back. Any thread.
void set_preparation(DeviceKind kind, Kernel prepare);
/// Empty if nobody has said any.
std::optional<Kernel> preparation(DeviceKind kind);

}  // namespace quadriga
