// Files that cannot be written leave what was there.
#include "base/write_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/small_scenario.hpp"

namespace stratagem {
namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_CASE("a file is written, and written again, and no draft stays") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.json";
  write_file(file.string(), "first");
  CHECK(read(file) == "first");
  write_file(file.string(), "second");
  CHECK(read(file) == "second");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a link stays, and what it leads to is written") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.json", link = folder.path() / "link.json";
  write_file(file.string(), "first");
  std::filesystem::create_symlink(file, link);
  write_file(link.string(), "second");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read(file) == "second");
}

TEST_CASE("what cannot be written is named with the reason, and what was there stays") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.json";
  write_file(file.string(), "kept");
  std::filesystem::create_directory(file.string() + ".part");  // no draft can be opened
  CHECK_THROWS_WITH(write_file(file.string(), "lost"),
                    ContainsSubstring("a.json: ") && ContainsSubstring("Is a directory"));
  CHECK(read(file) == "kept");
  CHECK_THROWS_WITH(write_file((folder.path() / "no" / "a.json").string(), "x"),
                    ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(write_file("/dev/full", "x"),
                    ContainsSubstring("/dev/full: ") && ContainsSubstring("No space left"));
}

}  // namespace
}  // namespace stratagem
