// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/readers_test.cpp: readers of files, and whole programs on them.
#include <gtest/gtest.h>
#include <quadriga/per_stream.h>
#include <quadriga/readers.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/fasta_text.h"
#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

using Complex = std::complex<float>;

/// A file that goes with the test.
class File {
 public:
  explicit File(std::string_view content, std::string_view end = "") {
    static int made = 0;
    path_ = testing::TempDir() + "readers_" + std::to_string(::getpid()) + "_" +
            std::to_string(made++) + std::string(end);
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~File() { std::remove(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// What `call` throws, without the file's name.
template <class Call>
std::string said(const File& file, Call call) {
  try {
    call();
  } catch (const Error& error) {
    std::string text = error.what();
    const std::size_t at = text.find(file.path());
    if (at != std::string::npos) text.replace(at, file.path().size(), "FILE");
    return text;
  }
  return "nothing";
}

TEST(Fasta, SequencesLieSideBySideWithTheirNames) {
  const File file(">first of three\nMKT\r\nA Y\n\n> second\nGG\n>\n*-x");
  const Pipeline::Source next = fasta(file.path(), 2);
  Chunk chunk;
  ASSERT_TRUE(next(chunk));
  const auto letters = chunk.values<char>("residues");
  EXPECT_EQ(std::string(letters.begin(), letters.end()), "MKTAYGG");
  const auto starts = chunk.values<std::int64_t>("starts");
  EXPECT_EQ(std::vector(starts.begin(), starts.end()), (std::vector<std::int64_t>{0, 5, 7}));
  EXPECT_EQ(names_of(chunk), (std::vector<std::string>{"first", "second"}));
  EXPECT_GE(chunk.bytes(), 7 + 24 + sizeof("first") + sizeof("second") - 2);
  Chunk last;
  ASSERT_TRUE(next(last));
  EXPECT_EQ(names_of(last), std::vector<std::string>{""});
  EXPECT_EQ(last.values<char>("residues").size(), 3u);
  Chunk none;
  EXPECT_FALSE(next(none));
  EXPECT_FALSE(next(none));
}

TEST(Fasta, WhatIsNoFastaIsRefused) {
  const File letters("MKT\n");
  EXPECT_EQ(said(letters, [&] { fasta(letters.path(), 2); }),
            "FILE: is no FASTA file: it doesn't begin with '>'");
  const File packed("\x1f\x8b", ".gz");
  EXPECT_EQ(said(packed, [&] { fasta(packed.path(), 2); }),
            "FILE: is no FASTA file: it doesn't begin with '>'; decompress it first");
  const File empty("");
  EXPECT_EQ(said(empty, [&] { fasta(empty.path(), 2); }),
            "FILE: is no FASTA file: it doesn't begin with '>'");
  EXPECT_EQ(said(empty, [&] { fasta(empty.path() + ".not", 2); }),
            "FILE.not: can't be read: No such file or directory");
  EXPECT_EQ(said(empty, [&] { fasta(empty.path(), 0); }),
            "fasta(): records of a chunk must be at least 1");
  const File hollow(">a\nMK\n>b\n>c\nM\n");
  EXPECT_EQ(said(hollow,
                 [&] {
                   Chunk chunk;
                   fasta(hollow.path(), 3)(chunk);
                 }),
            "FILE: record 'b' is empty");
  const File wrong(">a\nMK\n>b\nMK7\n");
  EXPECT_EQ(said(wrong,
                 [&] {
                   Chunk chunk;
                   fasta(wrong.path(), 3)(chunk);
                 }),
            "FILE: record 'b' has '7' at position 3; expected letters, '*' or '-'");
}

TEST(Fasta, WhatIsNoLetterIsToldSoThatItCanBeRead) {
  for (const auto& [letter, told] :
       std::map<char, std::string>{{'\v', "\\x0b"}, {'\0', "\\x00"}, {'\xe9', "\\xe9"}}) {
    const File file(">a\nM" + std::string(1, letter) + "K\n");
    EXPECT_EQ(said(file,
                   [&] {
                     Chunk chunk;
                     fasta(file.path(), 3)(chunk);
                   }),
              "FILE: record 'a' has '" + told + "' at position 2; expected letters, '*' or '-'");
  }
}

TEST(Fasta, RecordsLieAcrossBlocksOfTheText) {
  const std::string text = ">a b>c\nMK\n\nT*\n>\r\nG-\r\n>last\nAC";
  for (std::size_t block = 1; block < 12; ++block) {
    std::size_t at = 0;
    FastaText reader(
        "a text",
        [&](std::span<char> into) {
          const std::size_t count = text.copy(into.data(), into.size(), at);
          at += count;
          return count;
        },
        block);
    const FastaRecords first = reader.take(2);
    EXPECT_EQ(first.letters, "MKT*G-") << block;
    EXPECT_EQ(first.starts, (std::vector<std::int64_t>{0, 4, 6})) << block;
    EXPECT_EQ(first.names, (std::vector<std::string>{"a", ""})) << block;
    EXPECT_TRUE(reader.has_record());
    EXPECT_EQ(reader.take(2).letters, "AC") << block;
    EXPECT_FALSE(reader.has_record());
    at = 5;  // in the first title, which has a '>'
    reader.restart();
    EXPECT_EQ(reader.take(9).names, (std::vector<std::string>{"", "last"})) << block;
  }
}

TEST(Fasta, NamesOfOtherChunksAreRefused) {
  Chunk other;
  other.add("residues", 1, 1, DType::bytes);
  other.add("starts", 16, 1, DType::bytes);
  EXPECT_THROW(names_of(other), Error);
  other.context = std::make_shared<int>(7);
  EXPECT_THROW(names_of(other), Error);
}

/// Three records, with the lines of their index.
constexpr const char* indexed_text = ">a first\nMKTA\nYI\n\n> none\nGG*\n>c\nACDEF\nGHI\n";
constexpr const char* index_text = "a\t6\t9\t4\t5\nnone\t3\t25\t3\t4\nc\t8\t32\t5\t6\n";

TEST(FastaIndex, GivesTheChunksOfItsFile) {
  const File file(indexed_text);
  const File index(index_text);
  const IndexedSource source = fasta(file.path(), 2, index.path());
  EXPECT_EQ(source.sizes, (std::vector<double>{9 + 24, 8 + 16}));
  for (const std::uint64_t number : {1, 0, 1}) {
    const Pipeline::Source in_order = fasta(file.path(), 2);
    Chunk expected;
    for (std::uint64_t i = 0; i <= number; ++i) {
      expected = Chunk(i);
      ASSERT_TRUE(in_order(expected));
    }
    Chunk chunk(number);
    ASSERT_TRUE(source.read(chunk));
    EXPECT_EQ(names_of(chunk), names_of(expected));
    for (const char* const field : {"residues", "starts"})
      EXPECT_TRUE(std::ranges::equal(chunk.values<char>(field), expected.values<char>(field)))
          << field << " of chunk " << number;
  }
}

TEST(FastaIndex, HasNoChunkBehindItsLast) {
  const File file(indexed_text);
  const File index(index_text);
  const IndexedSource source = fasta(file.path(), 2, index.path());
  for (const std::uint64_t number :
       {std::uint64_t{2}, std::uint64_t{7}, ~std::uint64_t{0} / 2 + 1}) {
    Chunk chunk(number);
    EXPECT_FALSE(source.read(chunk)) << number;
  }
}

TEST(FastaIndex, ThatDoesntFitIsRefused) {
  const File file(indexed_text);
  const std::string text = index_text;
  const auto changed = [&](std::string_view before, std::string_view after) {
    std::string made = text;
    return made.replace(made.find(before), before.size(), after);
  };
  const std::pair<std::string, const char*> wrong[] = {
      {changed("none", "other"), "at record 'other'"},
      {changed("\t3\t25\t3", "\t2\t25\t3"), "at record 'none'"},
      {text.substr(0, text.rfind("c\t")), "which goes on behind its last record"},
      {text + "d\t8\t99\t8\t9\n", "at record 'd'"},
      {text + "d\t9223372036854775807\t99\t1\t9223372036854775807\n", "at record 'd'"},
      {changed("25", "32"), "at record 'c'"},
      {"a\t6\tnine\t4\t5\n", "can't be read as an index"},
      {"a\t6\n", "can't be read as an index"},
      {"", "which goes on behind its last record"}};
  for (const auto& [lines, told] : wrong) {
    const File index(lines);
    const std::string message = said(file, [&] {
      const IndexedSource source = fasta(file.path(), 10, index.path());
      Chunk chunk;
      source.read(chunk);
    });
    EXPECT_NE(message.find(told), std::string::npos) << lines << message;
  }
  const File old(index_text);
  const auto time = std::filesystem::last_write_time(file.path());
  std::filesystem::last_write_time(old.path(), time - std::chrono::seconds(1));
  EXPECT_NE(said(file, [&] { fasta(file.path(), 1, old.path()); }).find("is older than FILE"),
            std::string::npos);
  EXPECT_NE(said(file, [&] { fasta(file.path(), 1, file.path() + ".fai"); })
                .find("FILE.fai: can't be read"),
            std::string::npos);
}

TEST(Voltages, SizesAreCheckedAtOnce) {
  const File file("abcdefghijkl");
  const Pipeline::Source next = voltages(file.path(), 3);
  Chunk first;
  Chunk second;
  Chunk none;
  ASSERT_TRUE(next(first));
  ASSERT_TRUE(next(second));
  EXPECT_FALSE(next(none));
  EXPECT_EQ(second.values<std::int8_t>("array").size(), 6u);
  EXPECT_EQ(second.values<std::int8_t>("array")[0], 'g');
  EXPECT_EQ(said(file, [&] { voltages(file.path(), 4); }),
            "FILE: has 6 samples, which are 1 chunks of 4 and 2 more");
  EXPECT_EQ(said(file, [&] { voltages(file.path(), 7); }),
            "FILE: has 6 samples, fewer than the 7 of a chunk");
  EXPECT_EQ(said(file, [&] { voltages(file.path(), 0); }),
            "voltages(): samples of a chunk must be at least 1");
  const File odd("abc");
  EXPECT_EQ(said(odd, [&] { voltages(odd.path(), 1); }),
            "FILE: is truncated: 3 bytes of data are 1 pairs and a byte");
  EXPECT_EQ(said(odd, [&] { voltages("/", 1); }), "/: is a folder; expected a file");
}

TEST(Voltages, CopiesOfASourceReadOneFile) {
  const File file("abcdefghijkl");
  Pipeline::Source first = voltages(file.path(), 2);
  Pipeline::Source second = first;
  std::string read;
  for (const Pipeline::Source* const next : {&first, &second, &second}) {
    Chunk chunk;
    ASSERT_TRUE((*next)(chunk));
    const auto values = chunk.values<char>("array");
    read.append(values.begin(), values.end());
  }
  EXPECT_EQ(read, "abcdefghijkl");
  Chunk none;
  EXPECT_FALSE(first(none));
  EXPECT_FALSE(second(none));
}

TEST(Voltages, AFileThatBecomesShorterEndsTheRunWithAnError) {
  const File file(std::string(400, 'a'));
  Pipeline pipeline({.devices = "cpu:1"});
  pipeline.source(voltages(file.path(), 100));
  std::ofstream(file.path(), std::ios::binary) << std::string(250, 'a');
  EXPECT_EQ(said(file, [&] { pipeline.run(); }),
            "stage 'source' failed at chunk 1: FILE: became shorter while it was read");
}

class ProgramTest : public FlowTest {
 protected:
  static constexpr int rows = 8;
  static constexpr int cols = 16;

  /// A transform along an axis by its definition; a plan is a table of roots.
  using Plan = std::vector<Complex>;
  static Plan make_plan(const Arguments& arguments) {
    const View& x = arguments.operands[0];
    const auto size = static_cast<double>(x.rows * x.cols);
    Plan roots(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < roots.size(); ++i)
      roots[i] = Complex(std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / size));
    return roots;
  }
  static Complex& at(const View& x, std::int64_t row, std::int64_t col) {
    return x.as<Complex>()[row + col * x.ld];
  }
  /// `count` values `get(i)` become their transform.
  template <class Get>
  static void transform(const Plan& roots, std::int64_t count, Get get) {
    std::vector<Complex> sums(static_cast<std::size_t>(count));
    const auto step = static_cast<std::int64_t>(roots.size()) / count;
    for (std::int64_t k = 0; k < count; ++k)
      for (std::int64_t i = 0; i < count; ++i)
        sums[static_cast<std::size_t>(k)] +=
            get(i) * roots[static_cast<std::size_t>(i * k % count * step)];
    for (std::int64_t k = 0; k < count; ++k) get(k) = sums[static_cast<std::size_t>(k)];
  }
};

TEST_P(ProgramTest, ASearchOfADatabase) {
  std::string content;
  for (int i = 0; i < 20; ++i)
    content += ">r" + std::to_string(i) + "\n" + std::string(static_cast<std::size_t>(i + 1), 'A') +
               "CD\n";
  const File file(content);
  // How often each record has one letter.
  const Codelet score{.name = "score",
                      .access = {Access::read, Access::read, Access::write},
                      .cpu = [](const Arguments& a) {
                        const auto* const starts = a.operands[1].as<std::int64_t>();
                        for (std::int64_t i = 0; i < a.operands[2].rows; ++i)
                          a.operands[2].as<double>()[i] = static_cast<double>(std::count(
                              a.operands[0].as<char>() + starts[i],
                              a.operands[0].as<char>() + starts[i + 1], a.param<char>()));
                      }};
  const auto shape = [](const Chunk& c) {
    return FieldShape{static_cast<std::int64_t>(names_of(c).size())};
  };
  std::map<std::string, double> hits;

  Pipeline search({.memory = "64KiB", .engine = engine_.get()});
  search.source(fasta(file.path(), 8))
      .kernel(score, {reads("residues", "starts"), writes("score", shape)}, 'A')
      .serial([&](const Chunk& c) {
        for (std::size_t i = 0; i < names_of(c).size(); ++i)
          hits[names_of(c)[i]] = c.values<double>("score")[i];
      })
      .run();

  ASSERT_EQ(hits.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(hits["r" + std::to_string(i)], i + 1);
}

TEST_P(ProgramTest, ASpectrometer) {
  constexpr int size = rows * cols;
  constexpr int spectra = 5;
  std::string content;
  for (int n = 0; n < 2 * size * spectra; ++n) content += static_cast<char>(n * n % 251 - 125);
  const File file(content);
  const Codelet unpack{
      .name = "unpack", .access = {Access::read, Access::write}, .cpu = [](const Arguments& a) {
        const auto* const pairs = a.operands[0].as<std::int8_t>();
        for (int i = 0; i < size; ++i)
          at(a.operands[1], i / cols, i % cols) = {static_cast<float>(pairs[2 * i]),
                                                   static_cast<float>(pairs[2 * i + 1])};
      }};
  const LibraryCall<Plan> columns{.name = "columns", .cpu = [](Plan& plan, const Arguments& a) {
                                    for (std::int64_t c = 0; c < cols; ++c)
                                      transform(plan, rows, [&](std::int64_t r) -> Complex& {
                                        return at(a.operands[0], r, c);
                                      });
                                  }};
  const Codelet twiddle{.name = "twiddle",
                        .access = {Access::update},
                        .cpu = [plans = per_stream(make_plan)](const Arguments& a) {
                          for (int r = 0; r < rows; ++r)
                            for (int c = 0; c < cols; ++c)
                              at(a.operands[0], r, c) *=
                                  plans->of(a)[static_cast<std::size_t>(r * c)];
                        }};
  const LibraryCall<Plan> across{.name = "rows", .cpu = [](Plan& plan, const Arguments& a) {
                                   for (std::int64_t r = 0; r < rows; ++r)
                                     transform(plan, cols, [&](std::int64_t c) -> Complex& {
                                       return at(a.operands[0], r, c);
                                     });
                                 }};
  const Codelet power{
      .name = "power", .access = {Access::read, Access::write}, .cpu = [](const Arguments& a) {
        for (int k = 0; k < size; ++k)
          a.operands[1].as<float>()[k] = std::norm(at(a.operands[0], k % rows, k / rows));
      }};
  const auto matrix = [](const Chunk&) { return FieldShape{rows, cols, DType::complex64}; };
  const auto line = [](const Chunk&) { return FieldShape{size, 1, DType::float32}; };
  std::vector<std::vector<float>> waterfall;

  Pipeline sky({.memory = "64KiB", .engine = engine_.get()});
  sky.source(voltages(file.path(), size))
      .kernel(unpack, {reads("array"), temporary("x", matrix)})
      .library(columns, per_stream(make_plan))
      .kernel(twiddle, {updates("x")})
      .library(across, per_stream(make_plan))
      .kernel(power, {reads("x"), writes("spectrum", line)})
      .serial_in_order([&](const Chunk& c) {
        const auto values = c.values<float>("spectrum");
        waterfall.emplace_back(values.begin(), values.end());
      })
      .run();

  ASSERT_EQ(waterfall.size(), static_cast<std::size_t>(spectra));
  const auto* const pairs = reinterpret_cast<const std::int8_t*>(content.data());
  for (int s = 0; s < spectra; ++s)
    for (const int k : {0, 1, 17, size - 1}) {
      std::complex<double> sum;
      for (int i = 0; i < size; ++i)
        sum += std::complex<double>(pairs[2 * (s * size + i)], pairs[2 * (s * size + i) + 1]) *
               std::polar(1.0, -2 * std::numbers::pi * (k * i % size) / size);
      EXPECT_NEAR(waterfall[static_cast<std::size_t>(s)][static_cast<std::size_t>(k)],
                  std::norm(sum), 1e-3 * (1e4 + std::norm(sum)));
    }
}

INSTANTIATE_TEST_SUITE_P(Engines, ProgramTest, testing::Values(Where::host, Where::emulated),
                         engine_name);

}  // namespace
}  // namespace quadriga
