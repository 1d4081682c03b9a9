// What shells and man(1) read of the program, which they run.
#include <regex>

#include "tests/main/executable.hpp"

namespace stratagem {
namespace {

std::vector<std::string> matched(const std::string& text, const std::string& pattern) {
  const std::regex wanted(pattern);
  std::vector<std::string> all;
  for (std::sregex_iterator one(text.begin(), text.end(), wanted), end; one != end; ++one)
    all.push_back((*one)[1]);
  return all;
}

std::vector<std::string> commands() {
  const TemporaryFolder folder;
  const std::string help = run("--help", folder).out;
  const std::size_t from = help.find("Commands:") + 9;
  return matched(help.substr(from, help.find("\n\n", from) - from), R"(\n  (\w+) )");
}

/// Long names of the options of a command, as its help has them.
std::vector<std::string> options_of(const std::string& command) {
  const TemporaryFolder folder;
  std::vector<std::string> all =
      matched(run(command + " --help", folder).out, R"(\n  (?:-\w, |    )(--[\w-]+))");
  std::erase(all, "--help");
  return all;
}

/// From a beginning, which must be there, to the next end of its kind.
std::string part(const std::string& text, const std::string& beginning, const std::string& end) {
  const std::size_t from = text.find(beginning);
  REQUIRE(from != std::string::npos);
  return text.substr(from, text.find(end, from + beginning.size()) - from);
}

/// What bash would offer where a line's last word is completed.
std::string completed(const std::string& words) {
  const TemporaryFolder folder;
  folder.write("ask", "source ./script\nCOMP_WORDS=(" + words +
                          ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\nCOMPREPLY=()\n_stratagem\n"
                          "echo \"${COMPREPLY[*]}\"\n");
  const Ran ran = run("completion bash > script && bash ask", folder);
  CHECK(ran.exit == 0);
  return ran.out.substr(0, ran.out.find('\n'));
}

TEST_CASE("bash completes commands, their options, and the words that an option may have") {
  CHECK(completed("stratagem sim") == "simulate");
  CHECK(completed("stratagem simulate --js") == "--json");
  CHECK(completed("stratagem simulate a.json --no") == "--no-remedies");
  CHECK(completed("stratagem search a.json --for ''") == "time cost memory");
  CHECK(completed("stratagem list pr") == "profiles precisions");
  CHECK(completed("stratagem --library somewhere ord") == "order");
  CHECK(completed("stratagem simulate ''").empty());         // a file, which bash completes itself
  CHECK(completed("stratagem simulate --json ''").empty());  // likewise
}

TEST_CASE("bash completes a value behind an equals sign, as one word or as three") {
  CHECK(completed("stratagem search a.json --for = ti") == "time");
  CHECK(completed("stratagem search a.json --for =") == "time cost memory");
  CHECK(completed("stratagem search a.json --for=ti") == "--for=time");
  CHECK(completed("stratagem --library = somewhere ord") == "order");
  CHECK(completed("stratagem --library=somewhere ord") == "order");
  CHECK(completed("stratagem --library ''").empty());                 // a folder
  CHECK(completed("stratagem simulate a.json --json = ''").empty());  // a file
}

TEST_CASE("bash completes the word behind a comma where there may be several") {
  CHECK(completed("stratagem simulate a.json --columns mf") == "mfu");
  CHECK(completed("stratagem simulate a.json --columns idle,mf") == "idle,mfu");
  CHECK(completed("stratagem simulate a.json --columns = idle,hfu,mf") == "idle,hfu,mfu");
  CHECK(completed("stratagem simulate a.json --columns=idle,mf") == "--columns=idle,mfu");
  CHECK(completed("stratagem search a.json --for time,co").empty());
}

TEST_CASE("fish completes options that stand before commands, and lists") {
  if (std::system("command -v fish > /dev/null") != 0) return;
  const auto offered = [](const std::string& line) {
    const TemporaryFolder folder;
    folder.write("ask", "source ./script\ncomplete -C '" + line + "'\n");
    return run("completion fish > script && HOME=$PWD fish ask", folder).out;
  };
  CHECK_THAT(offered("stratagem --"), ContainsSubstring("--library\t") &&
                                          ContainsSubstring("--version\t") &&
                                          ContainsSubstring("--help\t"));
  CHECK_THAT(offered("stratagem --library somewhere ord"), StartsWith("order\t"));
  const std::string simulate = offered("stratagem simulate --");
  CHECK_THAT(simulate, ContainsSubstring("--help\t") && ContainsSubstring("--json\t"));
  CHECK_THAT(simulate, !ContainsSubstring("--version"));
  CHECK_THAT(offered("stratagem simulate --columns idle,mf"), ContainsSubstring("idle,mfu"));
}

TEST_CASE("every option of every command is completed, and is on the page of the manual") {
  const TemporaryFolder folder;
  const std::string bash = run("completion bash", folder).out;
  const std::string zsh = run("completion zsh", folder).out;
  const std::string fish = run("completion fish", folder).out;
  const std::string page = std::regex_replace(run("man", folder).out, std::regex(R"(\\-)"), "-");
  REQUIRE(commands().size() >= 13);
  for (const std::string& command : commands()) {
    CAPTURE(command);
    CHECK_THAT(page, ContainsSubstring("\n.SS " + command + "\n"));
    const std::vector<std::string> line = matched(bash, "\n    " + command + "\\) (.*)");
    REQUIRE(line.size() == 1);
    const std::string of_zsh = part(zsh, "\n  " + command + ") _arguments", ";;");
    const std::string of_page = part(page, "\n.SS " + command + "\n", "\n.SS ");
    for (const std::string& option : options_of(command)) {
      CAPTURE(option);
      CHECK_THAT(of_page, ContainsSubstring("\n\\fB" + option + "\\fR"));
      CHECK_THAT(line.front() + " ",
                 ContainsSubstring(option + " ") || ContainsSubstring(option + "\""));
      CHECK_THAT(of_zsh, ContainsSubstring(option + "[") || ContainsSubstring(option + "=["));
      CHECK_THAT(fish, ContainsSubstring("__fish_seen_subcommand_from " + command + "' -l " +
                                         option.substr(2) + " "));
    }
  }
}

TEST_CASE("shells that are here take their scripts") {
  for (const char* shell : {"bash -n", "zsh -n", "fish --no-execute"}) {
    const std::string name = std::string(shell).substr(0, std::string(shell).find(' '));
    if (std::system(("command -v " + name + " > /dev/null").c_str()) != 0) continue;
    const TemporaryFolder folder;
    const Ran ran = run("completion " + name + " > script && " + shell + " script", folder);
    CAPTURE(name, ran.err);
    CHECK(ran.exit == 0);
    CHECK(ran.err.empty());
  }
}

}  // namespace
}  // namespace stratagem
