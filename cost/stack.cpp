// Reads stack files.
#include "cost/stack.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/json_reader.hpp"
#include "cost/nccl/constants.hpp"
#include "cost/precision.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::cost {
namespace {

/// What kernels launch and move, of operators and of additions of gradients.
OperatorFacts read_kernels(const JsonReader& reader) {
  OperatorFacts facts;
  if (const auto kernels = reader.find("kernels"))
    facts.kernels = static_cast<int>(kernels->at_least(0));
  if (const auto passes = reader.find("extra_passes")) facts.extra_passes = passes->number();
  if (const auto why = reader.find("because")) why->skip();
  return facts;
}

OperatorFacts read_facts(const JsonReader& reader) {
  OperatorFacts facts = read_kernels(reader);
  if (const auto copies = reader.find("state_copies_before"))
    facts.state_copies_before = static_cast<int>(copies->at_least(0));
  if (const auto copies = reader.find("state_copies_after"))
    facts.state_copies_after = static_cast<int>(copies->at_least(0));
  return facts;
}

void check_operator(const JsonReader& where, const std::string& name) {
  check_word(where, name, model::stack_names(), "a kind of operator");
}

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

/// The member of an enumeration whose names are `names`, in its order.
template <typename Enum, std::size_t count>
Enum named(const JsonReader& reader, const std::array<std::string_view, count>& names) {
  const std::string word = reader.one_of(std::vector<std::string>(names.begin(), names.end()));
  return static_cast<Enum>(std::ranges::find(names, word) - names.begin());
}

/// {"groups": ["world", ...], "because": "..."}
std::vector<RankGroup> read_communicators(const JsonReader& reader) {
  std::vector<RankGroup> groups;
  for (const JsonReader& group : reader.at("groups").elements())
    groups.push_back(named<RankGroup>(group, rank_group_names));
  if (const auto why = reader.find("because")) why->skip();
  return groups;
}

/// A size that is not larger than `most`, which is called `largest`.
Bytes read_at_most(const JsonReader& reader, Bytes most, const std::string& largest) {
  const Bytes size = reader.quantity<Bytes>();
  if (size > most) reader.fail("at most " + largest, reader.dump());
  return size;
}

/// Bytes per parameter.
std::map<std::string, Bytes> read_sizes(const JsonReader& reader) {
  std::map<std::string, Bytes> sizes;
  for (const std::string& name : reader.keys())
    sizes[name] = read_at_most(reader.at(name), 1000_B, "1000 B a parameter");
  return sizes;
}

OptimizerFacts read_optimizer(const JsonReader& reader) {
  OptimizerFacts facts{
      .kernels = static_cast<int>(reader.at("kernels").at_least(1)),
      .extra_traffic = reader.at("extra_traffic").quantity<Bytes>(),
      .synchronizations = static_cast<int>(reader.at("synchronizations").at_least(0)),
      .extra_states = {}};
  facts.extra_states = read_sizes(reader.at("extra_states"));
  if (const auto copies = reader.find("gradient_copies"))
    facts.gradient_copies = read_sizes(*copies);
  if (const auto copies = reader.find("step_copies")) facts.step_copies = read_sizes(*copies);
  if (const auto why = reader.find("because")) why->skip();
  return facts;
}

RandomStateFacts read_random_state(const JsonReader& reader) {
  if (const auto why = reader.find("because")) why->skip();
  const auto count = [&](const char* key) { return static_cast<int>(reader.at(key).at_least(0)); };
  return {.size = reader.at("size").quantity<Bytes>(),
          .before_forward = count("before_forward"),
          .before_recomputation = count("before_recomputation"),
          .after_recomputation = count("after_recomputation")};
}

MemoryFacts read_memory(const JsonReader& reader) {
  MemoryFacts facts;
  facts.allocator =
      named<MemoryFacts::Allocator>(reader.at("allocator"), MemoryFacts::allocator_names);
  if (const auto workspace = reader.find("workspace")) {
    facts.workspace = read_constant<Bytes>(*workspace);
    read_at_most(workspace->at("value"), 1e15_B, "1 PB");
    facts.workspace_allocated =
        reader.at("workspace_from").one_of({"allocator", "driver"}) == "allocator";
  }
  if (const auto why = reader.find("because")) why->skip();
  return facts;
}

std::vector<std::vector<std::string>> read_fusions(const JsonReader& reader) {
  std::vector<std::vector<std::string>> fusions;
  for (const JsonReader& fusion : reader.elements()) {
    std::vector<std::string>& kinds = fusions.emplace_back();
    for (const JsonReader& kind : fusion.elements()) {
      check_operator(kind, kind.text());
      kinds.push_back(kind.text());
    }
    if (kinds.size() < 2) fusion.fail("at least two kinds of operators");
  }
  return fusions;
}

/// A kind of collective that turns one layout of a tensor into another.
CollectiveKind read_conversion(const JsonReader& reader) {
  const std::array kinds = {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                            CollectiveKind::reduce_scatter, CollectiveKind::all_to_all};
  std::vector<std::string> names;
  for (const CollectiveKind kind : kinds) names.push_back(to_text(kind));
  const std::string word = reader.one_of(names);
  return kinds.at(static_cast<std::size_t>(std::ranges::find(names, word) - names.begin()));
}

std::vector<CollectiveBeside> read_collectives(const JsonReader& reader) {
  std::vector<CollectiveBeside> rules;
  for (const JsonReader& rule : reader.elements()) {
    const bool weights =
        rule.at("beside").one_of({"input gradients", "weight gradients"}) == "weight gradients";
    rules.push_back(
        {.kind = read_conversion(rule.at("kind")),
         .of_gradients =
             rule.at("of").one_of({"activations", "input gradients"}) == "input gradients",
         .beside = weights ? model::Pass::weight_gradient : model::Pass::input_gradient});
    const auto same = [&](const CollectiveBeside& other) {
      return other.kind == rules.back().kind && other.of_gradients == rules.back().of_gradients;
    };
    if (std::ranges::count_if(rules, same) > 1)
      rule.fail("one rule for each kind of collective and what it is of", rule.dump());
    if (const auto why = rule.find("because")) why->skip();
  }
  return rules;
}

/// {"of": ["activations", "gradients"], "because": "..."}
void read_stage_shares(const JsonReader& reader, Stack& stack) {
  stack.shares_activations = stack.shares_gradients = false;
  for (const JsonReader& of : reader.at("of").elements()) {
    const bool activations = of.one_of({"activations", "gradients"}) == "activations";
    (activations ? stack.shares_activations : stack.shares_gradients) = true;
  }
  if (const auto why = reader.find("because")) why->skip();
}

std::vector<HeldInputs> read_held_inputs(const JsonReader& reader) {
  std::vector<HeldInputs> result;
  for (const JsonReader& held : reader.elements()) {
    const auto kind = [&](const char* key) {
      check_operator(held.at(key), held.at(key).text());
      return held.at(key).text();
    };
    result.push_back({.of = kind("of"), .until = kind("until")});
    if (result.back().of == result.back().until)
      held.at("until").fail("another kind than the one whose inputs are held");
    if (const auto why = held.find("because")) why->skip();
  }
  return result;
}

KeptOutputs read_kept_outputs(const JsonReader& reader) {
  KeptOutputs facts;
  facts.of = reader.at("of").text();
  check_word(reader.at("of"), facts.of, model::stack_names("F"), "a kind of forward operator");
  facts.passes = static_cast<int>(reader.at("passes").between(1, 100));
  if (const auto why = reader.find("because")) why->skip();
  return facts;
}

ShardCollectives read_shard_collectives(const JsonReader& reader) {
  ShardCollectives facts;
  facts.by_weight = reader.at("by").one_of({"segment", "weight"}) == "weight";
  facts.gathers_wait = reader.at("gathers").one_of({"queued", "waited for"}) == "waited for";
  facts.kernels_per_rank = static_cast<int>(reader.at("kernels_per_rank").between(0, 100));
  if (const auto one = reader.find("of_one_rank")) facts.of_one_rank = one->boolean();
  if (const auto why = reader.find("because")) why->skip();
  return facts;
}

StepGathers read_step_gathers(const JsonReader& reader) {
  StepGathers facts;
  if (const auto bucket = reader.find("bucket")) {
    facts.bucket = bucket->quantity<Bytes>();
    if (facts.bucket == Bytes{}) bucket->fail("a size above 0 B", bucket->dump());
  }
  facts.kernels_per_rank = static_cast<int>(reader.at("kernels_per_rank").between(0, 100));
  if (const auto why = reader.find("because")) why->skip();
  return facts;
}

Stack read_facts_and_scalars(const JsonReader& reader) {
  Stack stack;
  stack.name = reader.at("name").text();
  stack.source = reader.at("source").text();
  const JsonReader operators = reader.at("operators");
  for (const std::string& kind : operators.keys()) {
    check_operator(operators.at(kind), kind);
    stack.operators[kind] = read_facts(operators.at(kind));
  }
  std::vector<std::string> known;
  for (const Precision& precision : precisions()) known.push_back(precision.name);
  if (const auto some = reader.find("precisions")) {
    for (const JsonReader& precision : some->elements())
      stack.precisions.push_back(precision.one_of(known));
  } else {
    stack.precisions = known;
  }
  if (const auto fusions = reader.find("fusions")) stack.fusions = read_fusions(*fusions);
  if (const auto rules = reader.find("collectives")) stack.collectives = read_collectives(*rules);
  if (const auto shares = reader.find("stage_shares")) read_stage_shares(*shares, stack);
  if (const auto version = reader.find("nccl")) stack.nccl = read_version(*version);
  if (const auto groups = reader.find("communicators"))
    stack.communicators = read_communicators(*groups);
  stack.gradient_accumulation = read_kernels(reader.at("gradient_accumulation"));
  if (const auto waits = reader.find("host_waits"))
    stack.host_waits = named<HostWaits>(*waits, host_wait_names);
  if (const auto exchanges = reader.find("stage_exchanges"))
    stack.stage_exchanges = named<StageExchanges>(*exchanges, stage_exchange_names);
  if (const auto gradients = reader.find("gradients"))
    stack.frees_gradients = gradients->one_of({"kept", "freed"}) == "freed";
  if (const auto sent = reader.find("sent_activations"))
    stack.keeps_sent = sent->one_of({"kept", "freed"}) == "kept";
  if (const auto held = reader.find("held_inputs")) stack.held_inputs = read_held_inputs(*held);
  if (const auto kept = reader.find("kept_outputs")) stack.kept_outputs = read_kept_outputs(*kept);
  if (const auto shards = reader.find("shard_collectives"))
    stack.shard_collectives = read_shard_collectives(*shards);
  if (const auto gathers = reader.find("step_gathers"))
    stack.step_gathers = read_step_gathers(*gathers);
  stack.optimizer = read_optimizer(reader.at("optimizer"));
  if (const auto state = reader.find("random_state"))
    stack.random_state = read_random_state(*state);
  if (const auto memory = reader.find("memory")) stack.memory = read_memory(*memory);
  stack.slowdown = read_factor(reader.at("slowdown"));
  stack.host_factor = read_factor(reader.at("host_factor"));
  return stack;
}

/// A stack file over those that it is based on, all of which are added to `files`.
JsonReader over_bases(const std::string& file, std::vector<JsonReader>& files) {
  constexpr std::size_t most = 8;
  const JsonReader reader = files.emplace_back(JsonReader::from_file(file));
  const auto base = reader.find("base");
  if (!base) return reader;
  const auto folder = std::filesystem::path(file).parent_path();
  const std::string named = (folder / (base->text() + ".json")).string();
  if (!std::filesystem::exists(named)) base->fail("the name of a stack beside this one", named);
  if (files.size() == most)
    base->fail("at most 8 stacks that are based on each other, in no circle", named);
  return reader.over(over_bases(named, files));
}

}  // namespace

Stack read_stack(const std::string& file) {
  std::vector<JsonReader> files;
  const JsonReader reader = over_bases(file, files);
  Stack stack = read_facts_and_scalars(reader);
  for (const JsonReader& one : files) one.finish();
  return stack;
}

Seconds kernel_time(const Kernel& kernel, const Profile& profile, const Stack& stack) {
  const double factor = concerns_host(kernel.kind) ? 1.0 : stack.slowdown.value;
  return factor * kernel_time(kernel, profile);
}

std::optional<model::Pass> beside(const Stack& stack, CollectiveKind kind, bool of_gradients) {
  for (const CollectiveBeside& rule : stack.collectives) {
    if (rule.kind == kind && rule.of_gradients == of_gradients) return rule.beside;
  }
  return std::nullopt;
}

OperatorFacts facts_for(const Stack& stack, const std::string& kind) {
  const auto found = stack.operators.find(kind);
  return found == stack.operators.end() ? OperatorFacts{} : found->second;
}

}  // namespace stratagem::cost
