// The documents show what the program prints; if not, scripts/readme brings them up to date.
#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "base/read_file.hpp"
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

std::vector<std::filesystem::path> all_documents() {
  std::vector<std::filesystem::path> documents = {"README.md", "CONTRIBUTING.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator("docs")) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  }
  return documents;
}

/// What documents say to type: indented lines with the program's name, from its command on, without
/// comments and pipes.
std::vector<std::string> typed_in(const std::filesystem::path& file) {
  const std::regex line_of_shell(R"(^    (?:.*[ /(])?stratagem ([a-z].*))");
  std::vector<std::string> typed;
  std::ifstream stream(file);
  std::smatch found;
  for (std::string line; std::getline(stream, line);) {
    if (!std::regex_search(line, found, line_of_shell)) continue;
    const std::string command = found[1];
    typed.push_back(command.substr(0, std::min(command.find("    #"), command.find(" | "))));
  }
  return typed;
}

/// Could it be typed as it stands, and does it only read scenarios of ours?
bool can_run(const std::string& typed) {
  const std::regex placeholder(R"((^|[ \[])[A-Z]{2,}|\.\.\.|mine|train|config)");
  const std::set<std::string> quick = {"explain", "list",     "options",
                                       "search",  "simulate", "topology"};
  return quick.contains(typed.substr(0, typed.find(' '))) && !std::regex_search(typed, placeholder);
}

/// Headings as links name them: "What is fitted?" is "what-is-fitted".
std::set<std::string> anchors_of(const std::filesystem::path& file) {
  std::set<std::string> anchors;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("#")) continue;
    std::string anchor;
    for (const char c : line.substr(line.find(' ') + 1)) {
      const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
      if (kept) anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (c == ' ') anchor += '-';
    }
    anchors.insert(anchor);
  }
  return anchors;
}

}  // namespace

TEST_CASE("links in the documents lead to files and headings that are there") {
  const std::regex link(R"(\]\(([^)#\s]*)(#[^)\s]*)?\))");
  int followed = 0;
  for (const std::filesystem::path& document : all_documents()) {
    const std::string text = read_file(document);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string name = (*at)[1], anchor = (*at)[2];
      if (name.starts_with("http")) continue;
      INFO(document.string() << ": " << at->str());
      const auto target = name.empty() ? document : document.parent_path() / name;
      REQUIRE(std::filesystem::exists(target));
      CHECK((anchor.empty() || anchors_of(target).contains(anchor.substr(1))));
      ++followed;
    }
  }
  CHECK(followed > 50);
}

TEST_CASE("what the documents show is what the program prints (if not: scripts/readme)") {
  std::size_t checked = 0;
  for (const std::filesystem::path& document : all_documents()) {
    for (const Block& block : blocks_of(document)) {
      const TemporaryFolder folder;
      std::filesystem::create_directory_symlink(std::filesystem::absolute("scenarios"),
                                                folder.path() / "scenarios");
      INFO(document.string() + " shows: stratagem " + block.command);
      const Ran shown = run(block.command, folder);
      CHECK(shown.exit == 0);
      CHECK(shown.out == block.text);
      ++checked;
    }
  }
  CHECK(checked >= 6);  // the table of the README, three of accuracies, a cluster, the help
}

TEST_CASE("what the documents say to type is understood, and runs if it names files of ours") {
  const TemporaryFolder folder;
  std::filesystem::create_directory_symlink(std::filesystem::absolute("scenarios"),
                                            folder.path() / "scenarios");
  std::map<std::string, std::string> help;  // by command
  const std::regex option("--[a-z-]+");
  std::size_t options = 0, ran = 0;
  for (const std::filesystem::path& document : all_documents()) {
    for (const std::string& typed : typed_in(document)) {
      INFO(document.string() + ": stratagem " + typed);
      const std::string command = typed.substr(0, typed.find_first_of(" )"));
      std::string& known = help[command];
      if (known.empty()) known = run(command + " --help", folder).out;
      CHECK(!known.empty());
      for (std::sregex_iterator at(typed.begin(), typed.end(), option), end; at != end;
           ++at, ++options)
        CHECK(std::regex_search(known, std::regex(at->str() + "[ \n]")));
      if (!can_run(typed)) continue;
      CHECK(run(typed, folder).exit == 0);
      ++ran;
    }
  }
  CHECK(options > 50);
  CHECK(ran > 5);
}

#endif
