// Completion for zsh, with what each option is for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/arguments.hpp"
#include "commands/shells/completion.hpp"

namespace stratagem::commands {
namespace {

/// Within single quotes and the brackets of a specification.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char one : text) {
    if (one == '\'')
      result += "'\\''";
    else if (one == '[' || one == ']' || one == ':' || one == '\\')
      result += std::string("\\") + one;
    else
      result += one == '\n' ? ' ' : one;
  }
  return result;
}

std::string action(const Options::Option& option, bool separated) {
  const std::string words = fmt::format("{}", fmt::join(option.words, " "));
  if (words.empty()) return "_files";
  return separated ? "_values -s , value " + words : "(" + words + ")";
}

std::string specification(const Options& options, const Options::Option& option) {
  const std::string name = option.long_name();
  if (options.is_positional(name)) {
    const bool several = option.kind == Options::Kind::texts;
    return fmt::format("'{}:{}:{}'", several ? "*" : "", name, action(option, false));
  }
  if (option.kind == Options::Kind::flag)
    return fmt::format("'--{}[{}]'", name, zsh_text(option.help));
  return fmt::format("'*--{}=[{}]:value:{}'", name, zsh_text(option.help),
                     action(option, option.kind == Options::Kind::texts));
}

}  // namespace

std::string zsh_completion(const std::vector<Command>& commands) {
  std::string text =
      "#compdef stratagem\n# zsh completion of stratagem, written by `stratagem completion zsh`\n"
      "local -a commands\ncommands=(\n";
  for (const Command& command : commands)
    text += fmt::format("  '{}:{}'\n", command.name, zsh_text(command.summary));
  text +=
      ")\nif [[ ${words[2]} == --library=* ]] && (( CURRENT > 2 )); then\n"
      "  words[2]=()\n  (( CURRENT-- ))\n"
      "elif [[ ${words[2]} == --library ]] && (( CURRENT > 2 )); then\n"
      "  if (( CURRENT == 3 )); then _files -/; return; fi\n"
      "  words[2,3]=()\n  (( CURRENT -= 2 ))\nfi\n"
      "if (( CURRENT == 2 )); then\n  _describe command commands\n"
      "  _arguments '--help[show help]' '--version[show the version]' "
      "'--library=[profiles, stacks, nodes and plans]:folder:_files -/'\n  return\nfi\n"
      "shift words\n(( CURRENT-- ))\ncase ${words[1]} in\n";
  for (const Command& command : commands) {
    const Options options = command.options();
    text += fmt::format("  {}) _arguments '--help[this command]'", command.name);
    for (const Options::Option& option : options.all())
      text += " \\\n    " + specification(options, option);
    text += " ;;\n";
  }
  return text + "esac\n";
}

}  // namespace stratagem::commands
