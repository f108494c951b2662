// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/fasta_index.cpp: reading an index, and comparing it with its file.
#include "pipeline/fasta_index.h"

#include <quadriga/error.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace quadriga {
namespace {

constexpr std::size_t looked_at = std::size_t{1} << 16;  ///< Bytes behind the last record.

std::ifstream opened(const std::string& path) {
  require_regular(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(Errc::io, path + ": can't be read");
  return file;
}

}  // namespace

FastaIndex::FastaIndex(std::string path, std::string index)
    : path_(std::move(path)), index_(std::move(index)) {
  check_age();
  read();
  check_end();
}

void FastaIndex::check_age() const {
  std::error_code of_file;
  std::error_code of_index;
  const auto file = std::filesystem::last_write_time(path_, of_file);
  const auto made = std::filesystem::last_write_time(index_, of_index);
  if (of_file) fail(Errc::io, path_ + ": can't be read: " + of_file.message());
  if (of_index) fail(Errc::io, index_ + ": can't be read: " + of_index.message());
  if (made < file)
    fail(Errc::io, index_ + ": is older than " + path_ + "; make it again, as by samtools faidx");
}

void FastaIndex::fail_at(std::size_t record) const {
  fail(Errc::io, index_ + ": doesn't fit " + path_ + " at record '" + records_[record].name +
                     "'; make it again, as by samtools faidx");
}

void FastaIndex::read() {
  std::ifstream file = opened(index_);
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path_));
  for (std::string line; std::getline(file, line);) add(line, size);
  if (file.bad()) fail(Errc::io, index_ + ": can't be read");
}

void FastaIndex::add(const std::string& line, std::int64_t size) {
  const std::size_t tab = line.find('\t');
  std::int64_t letters = 0;
  std::int64_t offset = 0;
  std::int64_t a_line = 0;
  std::int64_t width = 0;
  std::istringstream numbers(tab == std::string::npos ? "" : line.substr(tab));
  if (!(numbers >> letters >> offset >> a_line >> width))
    fail(Errc::io, index_ +
                       ": can't be read as an index: expected lines of a name and four numbers, "
                       "as samtools faidx writes them: '" +
                       line + "'");
  const std::int64_t begin = this->begin(records_.size());
  const std::int64_t lines =
      std::max<std::int64_t>(0, letters - 1) / std::max<std::int64_t>(1, a_line);
  const bool can_be = letters > 0 && a_line > 0 && width >= a_line && offset > begin &&
                      letters <= size && width <= size && offset <= size && lines <= size / width;
  records_.push_back({line.substr(0, tab), letters, 0});
  if (!can_be) fail_at(records_.size() - 1);
  records_.back().end = offset + lines * (width - a_line) + letters;
  if (records_.back().end > size) fail_at(records_.size() - 1);
}

/// Behind the last record there is nothing.
void FastaIndex::check_end() const {
  std::ifstream file = opened(path_);
  file.seekg(begin(records_.size()));
  std::string rest(looked_at, ' ');
  file.read(rest.data(), static_cast<std::streamsize>(rest.size()));
  if (rest.find_first_not_of(" \t\r\n\v\f") < static_cast<std::size_t>(file.gcount()))
    fail(Errc::io, index_ + ": doesn't fit " + path_ + ", which goes on behind its last record");
}

}  // namespace quadriga
