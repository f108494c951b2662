// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/readers.h: sources of streams that read files of known formats.
#pragma once

#include <quadriga/pipeline.h>

#include <cstdint>
#include <string>
#include <vector>

namespace quadriga {

/// Chunks of a FASTA file of at most `records` sequences, the last of which may have fewer. Fields:
/// "residues", the letters of all, a byte each; "starts", one int64 more than there are sequences:
/// sequence i is residues[starts[i]] up to residues[starts[i + 1]]. names_of() has their names.
///
/// Example: `pipeline.source(fasta("sprot.fa", 8192))`, then `chunk.values<std::int64_t>("starts")`
/// Errors:  invalid_argument if `records` isn't positive; io naming the file and the record: at
///          once if it can't be read or doesn't begin with '>'; later, from the source, if a
///          sequence is empty or has anything but letters, '*' and '-'.
Pipeline::Source fasta(std::string path, std::int64_t records);

/// The same by an index of the file, as `samtools faidx` writes it: any chunk can be read by its
/// number, and sizes are known before content.
///
/// Errors:  as above; io also at once if the index is older than the file or can't be of it, and
///          from the source where the file doesn't have the index's names and lengths.
IndexedSource fasta(std::string path, std::int64_t records, std::string index);

/// What follows '>', up to the first space, by sequence of a chunk of fasta(). Errors:
/// invalid_argument for other chunks, and for parts.
const std::vector<std::string>& names_of(const Chunk& chunk);

/// Chunks of a file of complex voltages without a header, signed bytes in pairs, real part first.
/// The field "array" has 2 * `samples` of them: `chunk.values<std::int8_t>("array")`. Copies of the
/// source, as of fasta()'s, go on where another has read.
///
/// Errors:  invalid_argument at once if `samples` isn't positive, or the file's samples aren't a
///          multiple of it; io at once if it can't be read or ends within a pair; later, from the
///          source, if it has become shorter.
Pipeline::Source voltages(std::string path, std::int64_t samples);

}  // namespace quadriga
