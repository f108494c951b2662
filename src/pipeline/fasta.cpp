// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/fasta.cpp: sequences of a FASTA file, some records at a time.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/readers.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/file.h"
#include "pipeline/fasta_index.h"

namespace quadriga {
namespace {

/// Ignored between letters.
bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n';
}

/// Ends a name.
bool is_space(char letter) { return is_blank(letter) || letter == '\v' || letter == '\f'; }

/// For messages: what isn't printed everywhere, by its number.
std::string printable(char letter) {
  const bool is_ascii = letter >= ' ' && letter <= '~';
  return is_ascii ? std::string(1, letter)
                  : fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
}

bool is_allowed(char letter) {
  return (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') || letter == '*' ||
         letter == '-';
}

using RecordNames = std::vector<std::string>;

/// A context with this deleter is names of fasta(): no other code knows it.
struct DeleteNames {
  void operator()(const RecordNames* names) const { delete names; }
};

class FastaReader {
 public:
  FastaReader(std::string path, std::int64_t records) : path_(std::move(path)), records_(records) {
    require_regular(path_);
    file_.open(path_, std::ios::binary);
    if (!file_ || !std::getline(file_, title_)) {
      if (!file_.is_open() || file_.bad()) fail(Errc::io, path_ + ": can't be read");
    }
    if (!title_.starts_with('>'))
      fail(Errc::io, path_ + ": is no FASTA file: it doesn't begin with '>'" +
                         (path_.ends_with(".gz") ? "; decompress it first" : ""));
    has_title_ = true;
  }

  bool next(Chunk& chunk) {
    if (!has_title_) return false;
    fill(chunk, records_);
    return true;
  }

  /// Goes to the next title behind a place in the file.
  void seek(std::int64_t place) {
    file_.clear();
    file_.seekg(place);
    has_title_ = false;
    while (!has_title_ && std::getline(file_, title_)) has_title_ = title_.starts_with('>');
  }

  /// Adds up to `records` of the file to a chunk. Returns where each of them begins.
  std::span<const std::int64_t> fill(Chunk& chunk, std::int64_t records) {
    letters_.clear();
    starts_.assign(1, 0);
    std::shared_ptr<RecordNames> names(new RecordNames, DeleteNames{});
    while (has_title_ && static_cast<std::int64_t>(names->size()) < records)
      names->push_back(next_record());
    const auto count = static_cast<std::int64_t>(letters_.size());
    std::memcpy(chunk.add("residues", count, 1, DType::bytes).data, letters_.data(),
                letters_.size());
    const std::size_t bytes = starts_.size() * sizeof(std::int64_t);
    std::memcpy(chunk.add("starts", static_cast<std::int64_t>(bytes), 1, DType::bytes).data,
                starts_.data(), bytes);
    for (const std::string& each : *names) chunk.context_bytes += sizeof each + each.size();
    chunk.context = std::move(names);
    return starts_;
  }

 private:
  /// Adds a record's letters; returns its name.
  std::string next_record() {
    const auto first = std::ranges::find_if_not(title_.begin() + 1, title_.end(), is_space);
    std::string name(first, std::find_if(first, title_.end(), is_space));
    has_title_ = false;
    const std::size_t begin = letters_.size();
    for (std::string line; std::getline(file_, line);) {
      if (line.starts_with('>')) {
        title_ = std::move(line);
        has_title_ = true;
        break;
      }
      std::ranges::copy_if(line, std::back_inserter(letters_),
                           [](char letter) { return !is_blank(letter); });
    }
    if (file_.bad()) fail(Errc::io, path_ + ": can't be read");
    if (letters_.size() == begin) fail(Errc::io, path_ + ": record '" + name + "' is empty");
    const auto wrong = std::find_if_not(letters_.begin() + static_cast<std::ptrdiff_t>(begin),
                                        letters_.end(), is_allowed);
    if (wrong != letters_.end())
      fail(Errc::io,
           path_ + ": record '" + name + "' has '" + printable(*wrong) + "' at position " +
               std::to_string(wrong - letters_.begin() - static_cast<std::ptrdiff_t>(begin) + 1) +
               "; expected letters, '*' or '-'");
    starts_.push_back(static_cast<std::int64_t>(letters_.size()));
    return name;
  }

  const std::string path_;
  const std::int64_t records_;
  std::ifstream file_;
  std::string title_;  ///< Of the next record.
  bool has_title_ = false;
  std::string letters_;
  std::vector<std::int64_t> starts_;
};

}  // namespace

Pipeline::Source fasta(std::string path, std::int64_t records) {
  require(records > 0, "fasta(): records of a chunk must be at least 1");
  auto reader = std::make_shared<FastaReader>(std::move(path), records);
  return [reader](Chunk& chunk) { return reader->next(chunk); };
}

IndexedSource fasta(std::string path, std::int64_t records, std::string index) {
  require(records > 0, "fasta(): records of a chunk must be at least 1");
  auto reader = std::make_shared<FastaReader>(path, records);
  const auto known = std::make_shared<const FastaIndex>(std::move(path), std::move(index));
  const auto each = static_cast<std::size_t>(records);
  IndexedSource made;
  for (std::size_t first = 0; first < known->records(); first += each) {
    const std::size_t count = std::min(each, known->records() - first);
    auto bytes = static_cast<double>((count + 1) * sizeof(std::int64_t));
    for (std::size_t i = 0; i < count; ++i) bytes += static_cast<double>(known->letters(first + i));
    made.sizes.push_back(bytes);
  }
  // Copies of the source share the reader.
  const auto reading = std::make_shared<std::mutex>();
  made.read = [reader, known, each, reading, chunks = made.sizes.size()](Chunk& chunk) {
    if (chunk.number() >= chunks) return false;
    const std::lock_guard lock(*reading);
    const std::size_t first = chunk.number() * each;
    const std::size_t count = std::min(each, known->records() - first);
    reader->seek(known->begin(first));
    const auto starts = reader->fill(chunk, static_cast<std::int64_t>(count));
    const RecordNames& names = names_of(chunk);
    for (std::size_t i = 0; i < count; ++i)
      if (i >= names.size() || names[i] != known->name(first + i) ||
          starts[i + 1] - starts[i] != known->letters(first + i))
        known->fail_at(first + i);
    return true;
  };
  return made;
}

const std::vector<std::string>& names_of(const Chunk& chunk) {
  require(std::get_deleter<DeleteNames>(chunk.context) != nullptr,
          "names_of(): the chunk isn't one of fasta()");
  return *static_cast<const RecordNames*>(chunk.context.get());
}

}  // namespace quadriga
