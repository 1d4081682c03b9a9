// The only file that knows cxxopts: its regular expressions take a minute to compile with
// sanitizers.
#include "commands/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cxxopts.hpp>
#include <filesystem>
#include <map>

#include "base/nearest.hpp"

namespace stratagem::commands {

Options& Options::flag(std::string name, std::string help) {
  options_.push_back({Kind::flag, std::move(name), std::move(help), {}});
  return *this;
}
Options& Options::text(std::string name, std::string help, std::optional<std::string> otherwise) {
  options_.push_back({Kind::text, std::move(name), std::move(help), std::move(otherwise)});
  return *this;
}
Options& Options::texts(std::string name, std::string help) {
  options_.push_back({Kind::texts, std::move(name), std::move(help), {}});
  return *this;
}
Options& Options::whole(std::string name, std::string help, std::optional<int> otherwise) {
  std::optional<std::string> text;
  if (otherwise) text = std::to_string(*otherwise);
  options_.push_back({Kind::whole, std::move(name), std::move(help), std::move(text)});
  return *this;
}
Options& Options::real(std::string name, std::string help) {
  options_.push_back({Kind::real, std::move(name), std::move(help), {}});
  return *this;
}
Options& Options::ending(std::string ending) {
  options_.back().ending = std::move(ending);
  return *this;
}

Options& Options::among(std::vector<std::string> words) {
  options_.back().words = std::move(words);
  return *this;
}
Options& Options::positional(std::vector<std::string> names, std::string help) {
  positional_ = std::move(names);
  positional_help_ = std::move(help);
  return *this;
}

bool Options::is_positional(const std::string& name) const {
  return std::ranges::find(positional_, name) != positional_.end();
}

struct Arguments::Parsed {
  std::string help;
  std::map<std::string, std::string> helps = {};  ///< by name of an option
  std::vector<std::string> positional;
  std::optional<cxxopts::ParseResult> result;

  [[nodiscard]] std::string help_of(const std::string& name) const {
    const auto known = helps.find(name);
    return known == helps.end() || known->second.empty() ? "" : ": " + known->second;
  }
};

namespace {

std::shared_ptr<cxxopts::Value> value_of(const Options::Option& option) {
  using Kind = Options::Kind;
  std::shared_ptr<cxxopts::Value> value;
  switch (option.kind) {
    case Kind::flag:
      value = cxxopts::value<bool>();
      break;
    case Kind::texts:
      value = cxxopts::value<std::vector<std::string>>();
      break;
    default:  // numbers, too: cxxopts would read "1,8" as 1
      value = cxxopts::value<std::string>();
      break;
  }
  if (option.otherwise) value->default_value(*option.otherwise);
  return value;
}

/// The number that a text is as a whole.
template <typename Number>
std::optional<Number> number_of(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

/// Throws UsageError for a word that is none of an option's.
void check_word(const Options::Option& option, const std::string& name, const std::string& word) {
  if (std::ranges::find(option.words, word) != option.words.end()) return;
  throw UsageError(fmt::format("{}: expected one of {}{}, found {}", name,
                               fmt::join(option.words, ", "), did_you_mean(word, option.words),
                               word));
}

/// Throws UsageError for a file of another kind than the option writes. A name without an ending is
/// anybody's.
void check_ending(const Options::Option& option, const std::string& name, const std::string& file) {
  const std::string found = std::filesystem::path(file).extension().string();
  if (found.empty() || found == option.ending) return;
  throw UsageError(
      fmt::format("{}: expected a file that ends in {}, found {}", name, option.ending, file));
}

/// Throws UsageError for the first "--name", or "-name", that is no option. "-oFILE" is one where
/// `letters` have "o".
void check_names(const std::vector<std::string>& line, const std::vector<std::string>& known,
                 const std::string& letters) {
  for (const std::string& word : line) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    if (name.size() <= 2 || name[0] != '-' || number_of<double>(name)) continue;
    const bool brief = name[1] != '-' && letters.find(name[1]) != std::string::npos;
    if (brief || std::ranges::find(known, name) != known.end()) continue;
    const std::string near = did_you_mean(name.starts_with("--") ? name : "-" + name, known, "");
    throw UsageError("no option " + name + (near.empty() ? "; --help lists them" : near));
  }
}

/// Throws UsageError for an option without the value that it takes, and says what that is.
void check_value(const Options::Option& option, const std::vector<std::string>& line,
                 const std::vector<std::string>& known) {
  if (option.kind == Options::Kind::flag) return;
  const std::string name = "--" + option.long_name();
  const auto at = std::ranges::find(line, name);
  if (at == line.end()) return;
  if (at + 1 == line.end() || std::ranges::find(known, *(at + 1)) != known.end())
    throw UsageError(name + " takes a value: " + option.help);
}

/// Throws UsageError for a text that is no number of the option's kind.
void check_number(const Options::Option& option, const std::string& name, const std::string& text) {
  const bool is_whole = option.kind == Options::Kind::whole;
  if (is_whole ? number_of<int>(text).has_value() : number_of<double>(text).has_value()) return;
  throw UsageError(fmt::format("{}: expected {}, found {}", name,
                               is_whole ? "a whole number" : "a number, as 2.5", text));
}

}  // namespace

std::optional<int> whole_number(const std::string& text) { return number_of<int>(text); }

Arguments::Arguments(const Options& options, const std::vector<std::string>& line)
    : parsed_(std::make_unique<Parsed>()) {
  cxxopts::Options known(options.title_, options.summary_);
  for (const Options::Option& option : options.options_)
    known.add_options()(option.name, option.help, value_of(option));
  known.add_options()("h,help", "this text");
  known.parse_positional(options.positional_);
  if (!options.positional_help_.empty()) known.positional_help(options.positional_help_);
  parsed_->help = known.help();
  parsed_->positional = options.positional_;
  std::vector<std::string> names = {"--help"};
  std::string letters = "h";
  for (const Options::Option& option : options.options_) {
    names.push_back("--" + option.long_name());
    if (option.name != option.long_name()) letters += option.name.front();
    parsed_->helps[option.long_name()] =
        option.words.empty() ? option.help
                             : fmt::format("one of {}", fmt::join(option.words, ", "));
  }
  check_names(line, names, letters);
  for (const Options::Option& option : options.options_) check_value(option, line, names);
  std::vector<const char*> words = {"stratagem"};
  for (const std::string& word : line) words.push_back(word.c_str());
  try {
    parsed_->result = known.parse(static_cast<int>(words.size()), words.data());
  } catch (const std::exception& error) {
    throw UsageError(error.what());
  }
  if (!parsed_->result->unmatched().empty())
    throw UsageError(fmt::format(
        "\"{}\" is one argument too many: {} takes {}, options aside; values are written --set "
        "tensor=4, and in quotes if blanks are in them",
        parsed_->result->unmatched().front(), options.title_,
        options.positional_help_.empty() ? "none" : options.positional_help_));
  for (const Options::Option& option : options.options_) {
    const std::string name = option.long_name();
    if (!has(name)) continue;
    const std::string shown = options.is_positional(name) ? name : "--" + name;
    if (option.kind == Options::Kind::whole || option.kind == Options::Kind::real)
      check_number(option, shown, text(name));
    if (!option.ending.empty()) check_ending(option, shown, text(name));
    if (option.words.empty()) continue;
    if (option.kind == Options::Kind::text) check_word(option, shown, text(name));
    if (option.kind == Options::Kind::texts)
      for (const std::string& word : texts(name)) check_word(option, shown, word);
  }
}

Arguments::~Arguments() = default;

bool Arguments::has(const std::string& name) const { return parsed_->result->count(name) > 0; }
std::string Arguments::text(const std::string& name) const {
  return (*parsed_->result)[name].as<std::string>();
}
std::vector<std::string> Arguments::texts(const std::string& name) const {
  return (*parsed_->result)[name].as<std::vector<std::string>>();
}
int Arguments::whole(const std::string& name) const { return number_of<int>(text(name)).value(); }
double Arguments::real(const std::string& name) const {
  return number_of<double>(text(name)).value();
}

std::string Arguments::required(const std::string& name) const {
  if (has(name)) return text(name);
  const bool positional = std::ranges::count(parsed_->positional, name) > 0;
  throw UsageError((positional ? "missing " : "missing --") + name + parsed_->help_of(name));
}

std::string Arguments::text_or_nothing(const std::string& name) const {
  return has(name) ? text(name) : "";
}

bool Arguments::helped() const {
  if (!has("help")) return false;
  fmt::print("{}", parsed_->help);
  return true;
}

}  // namespace stratagem::commands
