// Packed files: what this writes gzip reads, and the other way round.
#include "base/gzip.hpp"

#include "base/input_error.hpp"
#include "base/read_file.hpp"
#include "base/write_file.hpp"
#include "tests/small_scenario.hpp"

using namespace stratagem;

namespace {

constexpr std::size_t most = 1U << 20U;

/// What does not shrink and what does, longer than the pieces in which zlib is called.
std::string long_text() {
  std::string text(500'000, 'x');
  std::uint32_t state = 1;
  for (int i = 0; i < 400'000; ++i) {
    state = state * 1664525U + 1013904223U;
    text += static_cast<char>(state >> 24U);
  }
  return text;
}

}  // namespace

TEST_CASE("what is packed comes out again") {
  for (const std::string& text : {std::string(), std::string("a"), long_text()}) {
    const std::string packed = gzipped(text);
    CHECK(is_gzipped(packed));
    CHECK(packed == gzipped(text));
    CHECK(unzipped(packed, most).value() == text);
  }
  CHECK(gzipped(std::string(500'000, 'x')).size() < 1000);
  CHECK(!is_gzipped("{}"));
}

TEST_CASE("files of gzip's own are read, and gzip reads ours") {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "a.json").string();
  const std::string text = long_text();
  folder.write("a.json", text);
  REQUIRE(std::system(("gzip -k " + file).c_str()) == 0);
  CHECK(read_file(file + ".gz") == text);
  write_file(file + ".2.gz", text);
  REQUIRE(std::system(("gunzip " + file + ".2.gz").c_str()) == 0);
  CHECK(folder.read("a.json.2") == text);
  // Of several files gzip makes one.
  folder.write("both.gz", gzipped("one,") + gzipped("two"));
  CHECK(read_file((folder.path() / "both.gz").string()) == "one,two");
}

TEST_CASE("a broken file of gzip is told from a long one") {
  const std::string packed = gzipped(long_text());
  CHECK(!unzipped(packed.substr(0, packed.size() - 1), most));
  CHECK(!unzipped(packed.substr(0, 20), most));
  std::string changed = packed;
  changed[packed.size() - 6] = static_cast<char>(changed[packed.size() - 6] ^ 1);  // the checksum
  CHECK(!unzipped(changed, most));
  CHECK(unzipped(packed + std::string(512, '\0'), most).value() == long_text());  // as tar pads
  CHECK(unzipped(packed, 1000).value().size() > 1000);
  const TemporaryFolder folder;
  folder.write("a.gz", packed.substr(0, 20));
  CHECK_THROWS_AS(read_file((folder.path() / "a.gz").string()), InputError);
}
