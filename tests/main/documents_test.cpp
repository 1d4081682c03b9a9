// The documents show what the program prints; if not, scripts/readme brings them up to date.
#include "tests/main/executable.hpp"

// Not with sanitizers, with which tests/scenarios plays the same runs.
#ifndef __SANITIZE_ADDRESS__

using namespace stratagem;

namespace {

struct Block {
  std::string command;
  std::string text;
};

/// What stands between `<!-- prints: stratagem ... -->` and `<!-- end -->`, without the fence.
std::vector<Block> blocks_of(const std::filesystem::path& file) {
  const std::string start = "<!-- prints: stratagem ";
  std::vector<Block> blocks;
  std::ifstream stream(file);
  bool inside = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(start)) {
      blocks.push_back({line.substr(start.size(), line.find(" -->") - start.size()), ""});
      inside = true;
    } else if (line == "<!-- end -->") {
      inside = false;
    } else if (inside && line != "```") {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

}  // namespace

TEST_CASE("what the documents show is what the program prints (if not: scripts/readme)") {
  std::vector<std::filesystem::path> documents = {"README.md"};
  for (const auto& entry : std::filesystem::directory_iterator("docs"))
    documents.push_back(entry.path());
  std::size_t checked = 0;
  for (const std::filesystem::path& document : documents) {
    for (const Block& block : blocks_of(document)) {
      const TemporaryFolder folder;
      std::filesystem::create_directory_symlink(std::filesystem::absolute("scenarios"),
                                                folder.path() / "scenarios");
      INFO(document.string() + " shows: stratagem " + block.command);
      CHECK(run(block.command, folder).out == block.text);
      ++checked;
    }
  }
  CHECK(checked >= 6);  // the table of the README, three of accuracies, a cluster, the help
}

#endif
