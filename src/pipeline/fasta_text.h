// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/fasta_text.h: records of a FASTA text, for the sources of C++ and of Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "pipeline/fasta_index.h"

namespace quadriga {

/// Sequences side by side.
struct FastaRecords {
  std::vector<std::string> names;    ///< What follows '>', up to the first space.
  std::string letters;               ///< Of all.
  std::vector<std::int64_t> starts;  ///< Of each in `letters`, and where the last one ends.
};

/// Reads a text from its beginning to its end, a block at a time.
class FastaText {
 public:
  /// Puts what follows into `into`, and returns how many bytes: 0 at the end.
  using Read = std::function<std::size_t(std::span<char> into)>;

  /// `path` is for messages. Errors: io if the text doesn't begin with '>'; what `read` throws.
  FastaText(std::string path, Read read, std::size_t block_bytes);

  /// Whether there is another record.
  bool has_record() const noexcept { return has_record_; }
  /// Up to `most` records. Errors: io naming the record if it is empty or has anything but letters,
  /// '*' and '-'; what `read` throws.
  FastaRecords take(std::int64_t most);
  /// `read` goes on at another place: what lies before the next title there is passed over.
  void restart();

 private:
  bool has_bytes();
  std::span<const char> rest_of_line();
  bool begins_record();
  std::string title();
  void add_letters(FastaRecords& into);
  void check(const FastaRecords& records, bool is_any_wrong) const;

  const std::string path_;
  const Read read_;
  std::vector<char> block_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  bool has_record_ = false;  ///< Its '>' has been read.
};

/// A FASTA file that is read from its beginning, or from any place.
class FastaFile {
 public:
  /// Errors: io if it can't be read, or doesn't begin with '>'.
  explicit FastaFile(const std::string& path, std::size_t block_bytes = std::size_t{1} << 20);

  FastaText& text() noexcept { return *text_; }
  /// The text goes on with the first title behind this byte.
  void seek(std::int64_t place);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  const std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::unique_ptr<FastaText> text_;
};

/// Chunks of a file by number, as its index tells. Any thread.
class IndexedFasta {
 public:
  /// Errors: of FastaFile and FastaIndex.
  IndexedFasta(const std::string& path, std::int64_t records, std::string index);

  /// Bytes of each chunk's letters and starts.
  std::vector<double> sizes() const;
  std::size_t chunks() const noexcept { return (index_.records() + records_ - 1) / records_; }
  /// Errors: of FastaText::take(); io if the file doesn't have what the index says.
  FastaRecords read(std::size_t chunk);

 private:
  std::size_t count_of(std::size_t chunk) const;

  std::mutex mutex_;  ///< Guards file_.
  FastaFile file_;
  const FastaIndex index_;
  const std::size_t records_;
};

}  // namespace quadriga
