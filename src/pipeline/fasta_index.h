// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/fasta_index.h: a FASTA file's index, as `samtools faidx` writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quadriga {

/// Lines of name, letters, offset of the first letter, letters a line, bytes a line.
class FastaIndex {
 public:
  /// Errors: io if a file can't be read, the index is older than the file, or doesn't fit it.
  FastaIndex(std::string path, std::string index);

  std::size_t records() const noexcept { return records_.size(); }
  const std::string& name(std::size_t record) const { return records_[record].name; }
  std::int64_t letters(std::size_t record) const { return records_[record].letters; }
  /// Where to look for a record's '>': behind the letters of the one before.
  std::int64_t begin(std::size_t record) const {
    return record == 0 ? 0 : records_[record - 1].end;
  }
  [[noreturn]] void fail_at(std::size_t record) const;

 private:
  struct Record {
    std::string name;
    std::int64_t letters = 0;
    std::int64_t end = 0;  ///< In the file, without the end of its last line.
  };

  void check_age() const;
  void read();
  void add(const std::string& line, std::int64_t size);
  void check_end() const;

  const std::string path_;
  const std::string index_;
  std::vector<Record> records_;
};

}  // namespace quadriga
