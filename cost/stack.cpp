// Reads stack files.
#include "cost/stack.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/json_reader.hpp"
#include "cost/kernel_time.hpp"
#include "cost/nccl/constants.hpp"
#include "cost/precision.hpp"
#include "cost/rule_kinds.hpp"
#include "topology/node_file.hpp"

namespace stratagem::cost {
namespace {

Constant<double> read_factor(const JsonReader& reader) {
  auto factor = read_constant<double>(reader);
  if (!(factor.value > 0)) reader.at("value").fail("a factor above 0", reader.at("value").dump());
  return factor;
}

std::string read_version(const JsonReader& reader) {
  if (reader.text() == "none") return "";
  if (!nccl::is_version(reader.text()))
    reader.fail("a version of NCCL as \"2.28.9\", or \"none\"", reader.dump());
  return reader.text();
}

Constant<Bytes> read_workspace(const JsonReader& reader) {
  auto size = read_constant<Bytes>(reader);
  if (size.value > 1e15_B) reader.at("value").fail("at most 1 PB", reader.at("value").dump());
  return size;
}

/// That of any GPU, then those of newer ones, each from a compute capability on.
std::vector<MemoryFacts::Workspace> read_workspaces(const JsonReader& reader) {
  std::vector<MemoryFacts::Workspace> workspaces{{0, read_workspace(reader)}};
  const auto newer = reader.find("newer");
  if (!newer) return workspaces;
  for (const JsonReader& one : newer->elements()) {
    const int from = topology::read_compute_capability(one.at("from"));
    if (from <= workspaces.back().from)
      one.at("from").fail("more than that before it", one.at("from").dump());
    workspaces.push_back({from, read_workspace(one)});
  }
  return workspaces;
}

MemoryFacts read_memory(const JsonReader& reader) {
  MemoryFacts facts;
  using Allocator = MemoryFacts::Allocator;
  facts.allocator = choice<Allocator>({{"none", Allocator::none},
                                       {"caching", Allocator::caching},
                                       {"expandable", Allocator::expandable}})
                        .read(reader.at("allocator"));
  if (const auto workspace = reader.find("workspace")) {
    facts.workspaces = read_workspaces(*workspace);
    choose_workspace(facts, 0);
    facts.workspace_allocated =
        reader.at("workspace_from").one_of({"allocator", "driver"}) == "allocator";
  }
  if (const auto why = reader.find("because")) why->skip();
  return facts;
}

std::vector<std::string> known_precisions() {
  std::vector<std::string> known;
  for (const Precision& precision : precisions()) known.push_back(precision.name);
  return known;
}

/// A rule as its file says it.
struct WrittenRule {
  JsonReader text;
  std::string about;                    ///< its kind, and what it is about
  std::vector<std::string> precisions;  ///< with which it holds; all if empty
  Rule rule;
};

/// Of a rule that holds with some only.
std::vector<std::string> read_precisions(const JsonReader& rule) {
  std::vector<std::string> names;
  const auto list = rule.find("precisions");
  if (!list) return names;
  for (const JsonReader& name : list->elements()) names.push_back(name.one_of(known_precisions()));
  if (names.empty()) list->fail("at least one precision", list->dump());
  std::ranges::sort(names);
  return names;
}

/// Refuses keys of older files, and names the kind of rule that says the same.
void refuse_older_keys(const JsonReader& file) {
  std::istringstream keys_and_kinds(
      "operators operator gradient_accumulation operator optimizer operator optimizer state "
      "fusions fuse "
      "collectives collective stage_shares send_shares_of held_inputs hold_inputs_of "
      "kept_outputs keep_outputs_of gradients lifetime sent_activations lifetime "
      "host_waits host_waits stage_exchanges host_waits communicators communicator "
      "shard_collectives shard_collectives step_gathers step_gathers random_state random_state");
  std::map<std::string, std::string> kinds_of;
  for (std::string key, kind; keys_and_kinds >> key >> kind;)
    kinds_of[key] += (kinds_of[key].empty() ? "\"" : " or \"") + kind + '"';
  for (const auto& [key, kinds] : kinds_of) {
    if (const auto found = file.find(key))
      found->fail(R"(one of the "rules" in its place, with the key )" + kinds);
  }
}

const RuleKind& kind_of(const JsonReader& text) {
  std::string names;
  for (const RuleKind& kind : rule_kinds()) {
    if (text.has(kind.name())) return kind;
    names += (names.empty() ? "\"" : ", \"") + kind.name() + "\"";
  }
  text.fail("one of the keys " + names, text.dump());
}

/// Does a rule say all that another says?
bool says_all(const JsonReader& rule, const JsonReader& other) {
  return std::ranges::all_of(other.keys(), [&](const std::string& key) {
    return rule.has(key) && rule.at(key).dump() == other.at(key).dump();
  });
}

void drop(const JsonReader& text, std::vector<WrittenRule>& rules) {
  if (text.at("because").text().empty()) text.at("because").fail("some text");
  const JsonReader what = text.at("drop");
  const std::size_t dropped =
      std::erase_if(rules, [&](const WrittenRule& rule) { return says_all(rule.text, what); });
  if (dropped == 0 || what.keys().empty()) what.fail("what rules of the base say", what.dump());
}

/// What of a rule says which operators it is about, of the keys that its kind has.
std::string which_operators(const RuleKind& kind, const JsonReader& text) {
  std::string which;
  for (const OptionText& one : kind.keys) {
    if (one.key != "named" && one.key != "each_expert") continue;
    const auto found = text.find(one.key);
    if (found && found->dump() != "false") which += " " + one.key + " " + found->dump();
  }
  return which;
}

WrittenRule read_rule(const RuleKind& kind, const JsonReader& text) {
  WrittenRule written{text, kind.name(), read_precisions(text), kind.read(text)};
  for (std::size_t key = 0; key < kind.about; ++key)
    written.about += " " + text.at(kind.keys[key].key).dump();
  written.about += which_operators(kind, text);
  return written;
}

/// Are both about the same, and hold with some precision both?
bool contradict(const WrittenRule& one, const WrittenRule& other) {
  if (one.about != other.about) return false;
  if (one.precisions.empty() || other.precisions.empty()) return one.precisions == other.precisions;
  return std::ranges::any_of(one.precisions, [&](const std::string& name) {
    return std::ranges::any_of(other.precisions, [&](const std::string& base) {
      return is_variant_of(precision_named(name), base) ||
             is_variant_of(precision_named(base), name);
    });
  });
}

/// Adds what a file says to the rules of its base, of which it first takes back what it drops. Of
/// rules about the same the later one counts; the base's goes where both hold with the same.
void add_rules(const JsonReader& list, std::vector<WrittenRule>& rules) {
  for (const JsonReader& text : list.elements()) {
    if (!kind_of(text).read) drop(text, rules);
  }
  std::vector<WrittenRule> own;
  for (const JsonReader& text : list.elements()) {
    const RuleKind& kind = kind_of(text);
    if (!kind.read) continue;
    WrittenRule written = read_rule(kind, text);
    if (std::ranges::any_of(own, [&](const auto& other) { return contradict(other, written); }))
      text.fail("one rule about " + written.about, "another");
    own.push_back(written);
    const auto base = std::ranges::find_if(rules, [&](const WrittenRule& rule) {
      return rule.about == written.about && rule.precisions == written.precisions;
    });
    if (base == rules.end()) {
      rules.push_back(std::move(written));
    } else {
      *base = std::move(written);
    }
  }
}

Stack read_values(const JsonReader& reader) {
  Stack stack;
  stack.name = reader.at("name").text();
  stack.source = reader.at("source").text();
  if (const auto some = reader.find("precisions")) {
    for (const JsonReader& precision : some->elements())
      stack.precisions.push_back(precision.one_of(known_precisions()));
  } else {
    stack.precisions = known_precisions();
  }
  if (const auto version = reader.find("nccl")) stack.nccl = read_version(*version);
  if (const auto memory = reader.find("memory")) stack.memory = read_memory(*memory);
  stack.slowdown = read_factor(reader.at("slowdown"));
  stack.host_factor = read_factor(reader.at("host_factor"));
  if (const auto factor = reader.find("product_slowdown"))
    stack.product_slowdown = read_factor(*factor);
  return stack;
}

/// A stack file over those that it is based on, all of which are added to `files`.
JsonReader over_bases(const std::string& file, const std::filesystem::path& library,
                      std::vector<JsonReader>& files) {
  constexpr std::size_t most = 8;
  const JsonReader reader = files.emplace_back(JsonReader::from_file(file));
  const auto base = reader.find("base");
  if (!base) return reader;
  const std::string named = file_of_base(file, base->text(), library);
  if (!std::filesystem::exists(named))
    base->fail("the name of a stack beside this one or in the library", base->text());
  if (files.size() == most)
    base->fail("at most 8 stacks that are based on each other, in no circle", named);
  return reader.over(over_bases(named, library, files));
}

}  // namespace

void choose_workspace(MemoryFacts& memory, int compute_capability) {
  for (const MemoryFacts::Workspace& one : memory.workspaces) {
    if (one.from <= compute_capability) memory.workspace = one.size;
  }
}

std::string file_of_base(const std::string& file, const std::string& base,
                         const std::filesystem::path& library) {
  const std::filesystem::path beside = std::filesystem::path(file).parent_path() / (base + ".json");
  const bool in_library = !library.empty() && !std::filesystem::exists(beside);
  return (in_library ? library / (base + ".json") : beside).string();
}

Stack read_stack(const std::string& file, const std::filesystem::path& library) {
  std::vector<JsonReader> files;
  const JsonReader reader = over_bases(file, library, files);
  for (const JsonReader& one : files) refuse_older_keys(one);
  Stack stack = read_values(reader);
  std::vector<WrittenRule> rules;
  static_cast<void>(files.back().at("rules"));  // what has no base may say that it adds nothing
  for (std::size_t i = files.size(); i-- > 0;) {
    if (const auto list = files[i].find("rules")) add_rules(*list, rules);
  }
  for (const WrittenRule& rule : rules) {
    if (rule.precisions.empty()) {
      stack.rules.push_back(rule.rule);
    } else {
      stack.rules_of_precisions.push_back({rule.precisions, rule.rule});
    }
  }
  for (const JsonReader& one : files) one.finish();
  return stack;
}

void choose_rules(Stack& stack, const Precision& precision) {
  for (const Stack::OfPrecisions& one : stack.rules_of_precisions) {
    const auto holds = [&](const std::string& name) { return is_variant_of(precision, name); };
    if (std::ranges::any_of(one.precisions, holds)) stack.rules.push_back(one.rule);
  }
  stack.rules_of_precisions.clear();
}

bool says(const Stack& stack, const Rule& rule) {
  return std::ranges::find(stack.rules, rule) != stack.rules.end();
}

std::vector<std::string> preferred_attention(const Stack& stack) {
  const auto rules = rules_of<PreferredAttention>(stack);
  return rules.empty() ? std::vector{std::string(usual_attention)} : rules.back().implementations;
}

Seconds kernel_time(const Kernel& kernel, const Profile& profile, const Stack& stack) {
  double factor = concerns_host(kernel.kind) ? 1 : kernel.slowdown;
  if (is_frameworks_own(kernel.kind)) {
    factor *= stack.slowdown.value;
  } else if (!concerns_host(kernel.kind) && stack.product_slowdown) {
    factor *= stack.product_slowdown->value;
  }
  if (!is_attention(kernel.kind)) return factor * kernel_time(kernel, profile);
  return factor * kernel_time(kernel, profile, preferred_attention(stack));
}

}  // namespace stratagem::cost
