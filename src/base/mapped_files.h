// SPDX-License-Identifier: BSD-3-Clause
// src/base/mapped_files.h: mapped files that are truncated: a program ends with an error, a library
// goes on and tells.
//
// Invariants
//   1. A watched mapping is a slot. Its message is written before its address and doesn't change
//      while the address is set; the same holds for the path of a file to remove. One lock guards
//      writers.
//   2. The handler reads slots whose address is set, and calls only write(), unlink(), mmap(),
//      sigaction() and _exit().
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace quadriga {

/// From here on touching these bytes where their file has none ends the process, with status 1 and
/// a message that names the file. For programs: it takes over SIGBUS; faults elsewhere go to
/// whoever had it before. Mappings beyond the 32nd aren't watched.
void watch_mapping(const void* begin, std::size_t bytes, const std::string& file);

/// The same for a library: the process goes on, and what the file has no more reads as zeros, which
/// truncated_mappings() tells from then on. Mappings beyond the 1024th aren't watched.
void note_truncation(const void* begin, std::size_t bytes);

/// The beginnings of mappings of note_truncation() that were touched where their files had become
/// shorter. Some nanoseconds if there are none.
std::vector<const void*> truncated_mappings();

/// The mapping is about to go, or gone.
void forget_mapping(const void* begin) noexcept;

/// A file that is half-written and removed if the process ends so.
void watch_partial(const std::string& path);

/// The file is whole, or removed.
void forget_partial(const std::string& path) noexcept;

}  // namespace quadriga
