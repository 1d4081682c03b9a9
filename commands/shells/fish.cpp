// Completion for fish, with what each option is for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/arguments.hpp"
#include "commands/shells/completion.hpp"

namespace stratagem::commands {
namespace {

std::string fish_text(const std::string& text) {
  std::string result = "'";
  for (const char one : text) {
    if (one == '\'' || one == '\\') result += '\\';
    result += one == '\n' ? ' ' : one;
  }
  return result + "'";
}

std::string line_of(const Command& command, const Options& options, const Options::Option& option) {
  std::string line =
      fmt::format("complete -c stratagem -n '__fish_seen_subcommand_from {}'", command.name);
  const bool positional = options.is_positional(option.long_name());
  if (positional && option.words.empty()) return "";
  if (!positional) line += fmt::format(" -l {} -d {}", option.long_name(), fish_text(option.help));
  const std::string words = fmt::format("{}", fmt::join(option.words, " "));
  const bool several = !positional && option.kind == Options::Kind::texts;
  if (!words.empty())
    line += several ? fmt::format(" -x -a '(__fish_append , {})'", words)
                    : fmt::format(" -x -a '{}'", words);
  if (!positional && option.words.empty() && option.kind != Options::Kind::flag) line += " -r";
  return line + "\n";
}

}  // namespace

std::string fish_completion(const std::vector<Command>& commands) {
  std::string names;
  for (const Command& command : commands) names += std::string(" ") + command.name;
  const std::string before =
      fmt::format("complete -c stratagem -n 'not __fish_seen_subcommand_from{}'", names);
  std::string text =
      "# fish completion of stratagem, written by `stratagem completion fish`\n"
      "complete -c stratagem -l help -d 'show help'\n";
  text += before + " -l version -d 'show the version'\n";
  text += before +
          " -l library -d 'folder of profiles, stacks, nodes and plans' -x -a "
          "'(__fish_complete_directories)'\n";
  for (const Command& command : commands)
    text += fmt::format("{} -f -a {} -d {}\n", before, command.name, fish_text(command.summary));
  for (const Command& command : commands) {
    const Options options = command.options();
    for (const Options::Option& option : options.all()) text += line_of(command, options, option);
  }
  return text;
}

}  // namespace stratagem::commands
