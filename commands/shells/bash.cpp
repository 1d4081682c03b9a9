// Completion for bash. An option without words expects a file, which bash completes by itself.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/arguments.hpp"
#include "commands/shells/completion.hpp"

namespace stratagem::commands {
namespace {

// Bash makes three words of "--for=time" where "=" breaks words, as it usually does.
constexpr const char* beginning =
    R"(# bash completion of stratagem, written by `stratagem completion bash`
_stratagem() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command= options= words= before= i
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $current == --*=* ]]; then
    previous=${current%%=*} before=${current%%=*}= current=${current#*=}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      --library) [[ ${COMP_WORDS[++i]} == = ]] && ((++i)) ;;
      -* | =) ;;
      *) command=${COMP_WORDS[i]}; break ;;
    esac
  done
)";
constexpr const char* end = R"(  if [[ $current == -* ]]; then words=$options; fi
  COMPREPLY=($(compgen -P "$before" -W "$words" -- "$current"))
}
complete -o bashdefault -o default -F _stratagem stratagem
)";

std::string dashed(const Options::Option& option) { return "--" + option.long_name(); }

/// After a comma the next of several words begins.
constexpr const char* after_comma =
    "[[ $current == *,* ]] && before+=${current%,*}, current=${current##*,}; ";

/// A line for each option with a value: its words, or nothing, which is a file.
std::string values_of(const Command& command) {
  std::string cases;
  const Options options = command.options();
  for (const Options::Option& option : options.all()) {
    if (option.kind == Options::Kind::flag || options.is_positional(option.long_name())) continue;
    const bool several = option.kind == Options::Kind::texts && !option.words.empty();
    cases += fmt::format(
        "    \"{} {}\") {}"
        "COMPREPLY=($(compgen -P \"$before\" -W \"{}\" -- \"$current\")); return ;;\n",
        command.name, dashed(option), several ? after_comma : "", fmt::join(option.words, " "));
  }
  return cases;
}

/// A line for each command: its options, and the words that need none.
std::string options_of(const Command& command) {
  const Options options = command.options();
  std::vector<std::string> names = {"--help"}, words;
  for (const Options::Option& option : options.all()) {
    if (!options.is_positional(option.long_name()))
      names.push_back(dashed(option));
    else if (words.empty())
      words = option.words;
  }
  return fmt::format("    {}) options=\"{}\" words=\"{}\" ;;\n", command.name,
                     fmt::join(names, " "), fmt::join(words, " "));
}

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.emplace_back(command.name);
  std::string text = beginning;
  text += "  case \"$command $previous\" in\n    \" --library\") COMPREPLY=(); return ;;\n";
  for (const Command& command : commands) text += values_of(command);
  text += "  esac\n  case $command in\n";
  text += fmt::format("    \"\") options=\"--help --version --library\" words=\"{}\" ;;\n",
                      fmt::join(names, " "));
  for (const Command& command : commands) text += options_of(command);
  return text + "  esac\n" + end;
}

}  // namespace stratagem::commands
