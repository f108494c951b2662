// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/stream_local.h: library objects of a stream: handles, workspaces.
#pragma once

#include <memory>

namespace quadriga::cuda {

/// A place for one thing that belongs to a stream of a backend. Whoever puts something there keeps
/// it for the stream's life: the backend lets go of it before it destroys the stream, with the
/// stream's device current and nothing queued. Any thread; a stream's own place, one at a time.
///
/// Errors: invalid_argument if no backend made the stream.
std::shared_ptr<void>& stream_local(void* stream);

/// Called by the backend when it makes a stream, and before it destroys one.
void open_stream_local(void* stream);
void close_stream_local(void* stream) noexcept;

}  // namespace quadriga::cuda
