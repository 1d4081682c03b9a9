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
  if (!option.words.empty()) line += fmt::format(" -x -a '{}'", fmt::join(option.words, " "));
  if (!positional && option.words.empty() && option.kind != Options::Kind::flag) line += " -r";
  return line + "\n";
}

}  // namespace

std::string fish_completion(const std::vector<Command>& commands) {
  std::string text = "# fish completion of stratagem, written by `stratagem completion fish`\n";
  for (const Command& command : commands)
    text += fmt::format("complete -c stratagem -n __fish_use_subcommand -f -a {} -d {}\n",
                        command.name, fish_text(command.summary));
  for (const Command& command : commands) {
    const Options options = command.options();
    for (const Options::Option& option : options.all()) text += line_of(command, options, option);
  }
  return text;
}

}  // namespace stratagem::commands
