// The page of the manual.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "commands/arguments.hpp"
#include "commands/shells/completion.hpp"

namespace stratagem::commands {
namespace {

/// As man(7) wants text: hyphens that are copied, backslashes, no line that begins with a request.
std::string plain(const std::string& text) {
  std::string result;
  for (const char one : text) {
    const bool begins = result.empty() || result.back() == '\n';
    if (begins && (one == '.' || one == '\'')) result += "\\&";
    if (one == '-' || one == '\\')
      result += one == '-' ? "\\-" : "\\e";
    else
      result += one;
  }
  return result;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char one) { return std::toupper(one); });
  return text;
}

/// "--for time|cost|memory", or "SCENARIO" of one that needs no name.
std::string term(const Options& options, const Options::Option& option) {
  const std::string name = option.long_name();
  const std::string words = fmt::format("{}", fmt::join(option.words, "|"));
  if (options.is_positional(name)) return fmt::format("\\fI{}\\fR", plain(upper(name)));
  std::string text = fmt::format("\\fB\\-\\-{}\\fR", plain(name));
  if (option.kind == Options::Kind::flag) return text;
  return text + fmt::format(" \\fI{}\\fR", words.empty() ? "VALUE" : plain(words));
}

std::string section(const Command& command) {
  const Options options = command.options();
  std::string text = fmt::format(".SS {}\n.nf\n{}\n.fi\n", command.name, plain(options.summary()));
  for (const Options::Option& option : options.all()) {
    text += fmt::format(".TP\n{}\n{}\n", term(options, option), plain(option.help));
    if (option.otherwise && !option.otherwise->empty())
      text += fmt::format("(default: {})\n", plain(*option.otherwise));
  }
  return text;
}

}  // namespace

std::string man_page(const std::vector<Command>& commands, const std::string& version) {
  std::string text = fmt::format(
      ".TH STRATAGEM 1 \"\" \"stratagem {}\" \"\"\n.SH NAME\n"
      "stratagem \\- predict time and memory of parallel training plans on GPU clusters\n"
      ".SH SYNOPSIS\n\\fBstratagem\\fR [\\fB\\-\\-library\\fR \\fIFOLDER\\fR] \\fICOMMAND\\fR "
      "...\n.br\n\\fBstratagem\\fR \\fB\\-\\-help\\fR | \\fB\\-\\-version\\fR\n.SH COMMANDS\n",
      version);
  for (const Command& command : commands) text += section(command);
  return text +
         ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nbad input, or a run was refused: a line says why\n"
         ".TP\n2\nwrong usage\n.TP\n3\na bound does not hold, or no plan fits\n"
         ".SH ENVIRONMENT\n.TP\nSTRATAGEM_LIBRARY\nthe folder of profiles, stacks, nodes and plans "
         "that a scenario names and that are not beside it; \\fB\\-\\-library\\fR counts more\n";
}

}  // namespace stratagem::commands
