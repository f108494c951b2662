// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/fasta.cpp: sequences of a FASTA file, some records at a time.
#include <quadriga/error.h>
#include <quadriga/readers.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "pipeline/fasta_text.h"

namespace quadriga {
namespace {

using RecordNames = std::vector<std::string>;

/// A context with this deleter is names of fasta(): no other code knows it.
struct DeleteNames {
  void operator()(const RecordNames* names) const { delete names; }
};

void add_field(Chunk& chunk, const char* name, std::span<const std::byte> values) {
  const auto bytes = static_cast<std::int64_t>(values.size());
  std::memcpy(chunk.add(name, bytes, 1, DType::bytes).data, values.data(), values.size());
}

void fill(Chunk& chunk, FastaRecords records) {
  add_field(chunk, "residues", std::as_bytes(std::span(records.letters)));
  add_field(chunk, "starts", std::as_bytes(std::span(records.starts)));
  for (const std::string& each : records.names) chunk.context_bytes += sizeof each + each.size();
  chunk.context =
      std::shared_ptr<RecordNames>(new RecordNames(std::move(records.names)), DeleteNames{});
}

}  // namespace

Pipeline::Source fasta(std::string path, std::int64_t records) {
  require(records > 0, "fasta(): records of a chunk must be at least 1");
  return [file = std::make_shared<FastaFile>(path), records](Chunk& chunk) {
    if (!file->text().has_record()) return false;
    fill(chunk, file->text().take(records));
    return true;
  };
}

IndexedSource fasta(std::string path, std::int64_t records, std::string index) {
  require(records > 0, "fasta(): records of a chunk must be at least 1");
  const auto file = std::make_shared<IndexedFasta>(path, records, std::move(index));
  return {.read =
              [file](Chunk& chunk) {
                if (chunk.number() >= file->chunks()) return false;
                fill(chunk, file->read(chunk.number()));
                return true;
              },
          .sizes = file->sizes()};
}

const std::vector<std::string>& names_of(const Chunk& chunk) {
  require(std::get_deleter<DeleteNames>(chunk.context) != nullptr,
          "names_of(): the chunk isn't one of fasta()");
  return *static_cast<const RecordNames*>(chunk.context.get());
}

}  // namespace quadriga
