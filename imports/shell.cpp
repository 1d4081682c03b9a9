// Reads assignments in their order, as a shell would come to them.
#include "imports/shell.hpp"

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <regex>

#include "strategies/language/expression.hpp"

namespace stratagem::imports {
namespace {

/// Without comments and what continues a line; quotes, brackets of arrays and ends of commands part
/// words as blanks do.
std::string plain(const std::string& text) {
  std::string result;
  bool in_comment = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins = at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0;
    in_comment = text[at] != '\n' && (in_comment || (text[at] == '#' && begins));
    if (!in_comment) result += text[at];
  }
  for (std::size_t at = 0; (at = result.find("\\\n", at)) != std::string::npos;)
    result.replace(at, 2, "  ");
  for (char& one : result) {
    if (one == '"' || one == '\'' || one == '(' || one == ')' || one == ';') one = ' ';
  }
  return result;
}

/// Of the script, else of the environment, as a shell would find it.
std::optional<std::string> value_of(const std::string& name, const Variables& values) {
  if (const auto known = values.find(name); known != values.end()) return known->second;
  const char* const outside = std::getenv(name.c_str());
  return outside == nullptr ? std::nullopt : std::optional<std::string>(outside);
}

/// "8" of the "2*$GPUS" in "$((2*$GPUS))"; nothing where a name has no value.
std::optional<std::string> computed(const std::string& text, const Variables& values) {
  try {
    strategies::Expression expression(replaced(text, values), "");
    std::vector<std::int64_t> numbers;
    for (const std::string& name : expression.names())
      numbers.push_back(std::stoll(value_of(name, values).value_or("")));
    return std::to_string(expression.evaluate(numbers));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// The number that a script's last "#SBATCH" line with one of some options has; "" if none has.
std::string slurm_number(const std::string& text, const std::string& options) {
  const std::regex line("(?:^|\n)#SBATCH[ \t]+(?:" + options + ")(\\d+)");
  std::string number;
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at)
    number = (*at)[1];
  return number;
}

std::string slurm_servers(const std::string& text) {
  return slurm_number(text, R"((?:--nodes|-N)[= \t]*)");
}

std::string slurm_gpus(const std::string& text) {
  return slurm_number(text,
                      R"(--gpus-per-node[= \t](?:[a-z]\w*:)?|--gres[= \t]gpu:(?:[a-z]\w*:)?)");
}

}  // namespace

std::vector<std::string> words_of_script(const std::string& script) {
  const std::string text = plain(script);
  std::vector<std::string> words(1);
  for (const char one : text) {
    if (std::isspace(static_cast<unsigned char>(one)) == 0)
      words.back() += one;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

Variables variables_of(const std::string& text) {
  static const std::regex assignment(
      R"re((?:^|[\n;])[ \t]*(?:export\s+)?([A-Za-z_]\w*)=)re"
      R"re((?:\$\(\(([^()\n]+)\)\)|["']?(\$\{[^}\n]*\}|[^\s;"'()]+)))re");
  static const std::regex plain_value(R"([\w.,/][\w.,/-]*)");
  Variables values;
  if (const std::string servers = slurm_servers(text); !servers.empty())
    values["SLURM_NNODES"] = values["SLURM_JOB_NUM_NODES"] = servers;
  if (const std::string gpus = slurm_gpus(text); !gpus.empty())
    values["SLURM_GPUS_ON_NODE"] = values["SLURM_GPUS_PER_NODE"] = gpus;
  if (const std::string tasks = slurm_number(text, R"(--ntasks-per-node[= \t])"); !tasks.empty())
    values["SLURM_NTASKS_PER_NODE"] = tasks;
  for (std::sregex_iterator at(text.begin(), text.end(), assignment), end; at != end; ++at) {
    const std::smatch& found = *at;
    const std::optional<std::string> value =
        found[2].matched ? computed(found[2], values) : replaced(found[3], values);
    if (value && std::regex_match(*value, plain_value)) values[found[1]] = *value;
  }
  return values;
}

std::string replaced(const std::string& word, const Variables& values) {
  if (word.find('$') == std::string::npos) return word;
  static const std::regex use(R"re(\$(?:\{(\w+)(?::?[-=]["']?([^}"']*)["']?)?\}|(\w+)))re");
  std::string result;
  auto from = word.begin();
  for (std::sregex_iterator at(word.begin(), word.end(), use), end; at != end; ++at) {
    const std::string name = (*at)[1].matched ? (*at)[1] : (*at)[3];
    result.append(from, (*at)[0].first);
    const std::optional<std::string> known = value_of(name, values);
    if (known)
      result += *known;
    else if ((*at)[2].matched)
      result += (*at)[2];
    else
      result += at->str();
    from = (*at)[0].second;
  }
  return result.append(from, word.end());
}

std::string asked_of_slurm(const std::string& text) {
  const std::string servers = slurm_servers(text), gpus = slurm_gpus(text);
  return (servers.empty() ? "" : " --nodes " + servers) +
         (gpus.empty() ? "" : " --gpus-per-node " + gpus);
}

bool has_branches(const std::string& text) {
  static const std::regex branch(R"((^|\n)[ \t]*(if|case|elif)\s)");
  return std::regex_search(text, branch);
}

}  // namespace stratagem::imports
