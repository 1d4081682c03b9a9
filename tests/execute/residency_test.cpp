// What can wait where: every combination of subject, place, gap and division is run, and
// docs/reference/residency.md has what came of it.
#include <array>
#include <functional>
#include <map>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/execute/generated_page.hpp"
#include "tests/execute/trained.hpp"
#include "tests/lowering/irregular_plans.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::execute::residency_test {
namespace {

using strategies::Keep;
using strategies::Plan;
using What = Keep::What;
using Where = Keep::Where;

constexpr int micro_batches = 2;

/// One rule, or the place of the steps that says the same.
struct Row {
  What what;
  Where where;
  Keep::Between between;
  bool divided;
};

/// What a plan is like besides: its schedule, and whether its stages share one grid in equal parts.
struct Setting {
  bool flush = true;
  bool regular = true;
};
constexpr std::array<Setting, 4> settings = {
    {{true, true}, {false, true}, {true, false}, {false, false}}};

/// Are micro-batches to follow one another?
bool one_by_one(const Row& row) { return row.between == Keep::Between::micro_batches; }

/// Four devices: two stages of two ranks, along the axis over which the subject can be divided, or
/// one stage of four ranks.
Plan base(const Row& row, const Setting& setting) {
  const std::string ranks = row.what == What::checkpoints ? "tensor" : "data";
  const std::string schedule = setting.flush ? "1f1b" : "pipedream";
  const std::string recompute =
      row.what == What::checkpoints ? R"(, "recompute": "full")" : std::string();
  const std::string stages = one_by_one(row) && setting.flush
                                 ? R"(": 4)"
                                 : R"(": 2, "pipeline": 2, "schedule": ")" + schedule + "\"";
  Plan plan =
      lowering::plan_of(four_layers(), "{\"" + ranks + stages + recompute + "}", micro_batches);
  return setting.regular ? std::move(plan) : lowering::with_lists(std::move(plan));
}

/// Adds a rule as a plan file would. States, and the gradients before them, are where their steps
/// are, in their parts: what that says needs no rule.
void say(Plan& plan, const Row& row) {
  const std::vector<std::string> axes = {row.what == What::checkpoints ? "tensor" : "data"};
  const bool of_steps = row.what == What::states || row.what == What::gradients;
  const bool away = row.where == Where::host || row.where == Where::drives;
  plan.steps.said = "/steps";
  plan.steps.on_host |= away && (of_steps || row.what == What::parameters);
  if (row.divided && row.what != What::checkpoints && row.what != What::activations)
    plan.steps.divided = axes;
  Keep rule{.what = row.what, .between = row.between, .where = row.where, .said = "/keep"};
  if (row.divided) rule.divided = axes;
  if (row.where == Where::stage) rule.stage = 1;
  if (row.what == What::activations) rule.segments = {1, 2};  // of stage 0
  if (of_steps && row.where == Where::host) rule.where = Where::device;
  if (row.what == What::states) rule.divided.clear();
  const bool rest = rule.where == Where::device && (rule.divided.empty() || of_steps);
  const bool said = rest && !(row.what == What::gradients && row.divided);
  if (said) return;
  try {
    plan.residency.keep(std::move(rule));
  } catch (const InputError& error) {
    throw InputError("", "/keep" + error.path, error.expected, error.found);
  }
}

/// Trains a plan, if it has a flush; "", or why it is refused.
std::string outcome(const std::function<Plan()>& make) {
  static std::map<bool, Trained> references;
  try {
    const Plan plan = make();
    const bool recomputes = !plan.recomputed().empty();
    const program::Program program = lowering::lower(plan, lowering::plain_stack(), {});
    if (!plan.updates.flush) return "";  // one device has other versions of the weights
    if (std::string why = refusal(program, plan.graph()); !why.empty())
      return "simulated, not executed: " + why;
    static int number = 0;
    if (number++ % stride(5) != 0) return "";
    if (!references.contains(recomputes)) {
      const Plan one = lowering::plan_of(four_layers(), "{}", micro_batches);
      references.emplace(
          recomputes, train<double>(one.graph(), lowering::lower(one, lowering::plain_stack(), {}),
                                    micro_batches, 2));
    }
    const Trained trained = train<double>(plan.graph(), program, micro_batches, 2);
    CHECK(distance(trained, references.at(recomputes)) <= 1e-9);
    return "";
  } catch (const InputError& error) {
    return (error.path.empty() ? "" : error.path + ": ") + "expected " + error.expected +
           (error.found.empty() ? "" : ", found " + error.found);
  }
}

std::string outcome(const Row& row, const Setting& setting) {
  return outcome([&] {
    Plan plan = base(row, setting);
    say(plan, row);
    return plan;
  });
}

constexpr std::array<const char*, 5> subjects = {"parameters", "gradients", "states", "activations",
                                                 "checkpoints"};
constexpr std::array<const char*, 5> places = {"device", "stage", "peers", "host", "drives"};
constexpr std::array<const char*, 3> gaps = {"passes", "micro-batches", "iterations"};

/// The gap in which values of a subject are not used, where there is one alone.
Keep::Between own_gap(What what) {
  if (what == What::gradients) return Keep::Between::micro_batches;
  return what == What::states ? Keep::Between::iterations : Keep::Between::passes;
}

/// What the declaration of a rule refuses whatever the plan is: a value that the meaning of another
/// key rules out. One row stands for all that it covers.
struct Senseless {
  bool (*covers)(const Row& row);
  Row example;
  const char* because;
};
const std::vector<Senseless>& senseless() {
  using Between = Keep::Between;
  static const std::vector<Senseless> all = {
      {[](const Row& row) {
         return row.what == What::parameters && row.between == Between::iterations &&
                row.where != Where::device;
       },
       {What::parameters, Where::host, Between::iterations, false},
       "Parameters between iterations are whole on the device while an iteration lasts."},
      {[](const Row& row) { return row.what == What::activations && row.divided; },
       {What::activations, Where::host, Between::passes, true},
       "Activations are divided as the operators that make them are."},
      {[](const Row& row) { return row.where == Where::stage && row.what != What::activations; },
       {What::parameters, Where::stage, Between::passes, false},
       "Weights, their gradients and states are on the stage that computes with them and steps "
       "them, and checkpoints are of a stage's own segments: op-assign says where."}};
  return all;
}

bool makes_sense(const Row& row) {
  return std::ranges::none_of(senseless(), [&](const Senseless& one) { return one.covers(row); });
}

std::vector<Row> all_rows() {
  std::vector<Row> result;
  for (const What what :
       {What::parameters, What::gradients, What::states, What::activations, What::checkpoints}) {
    for (const auto between :
         {Keep::Between::passes, Keep::Between::micro_batches, Keep::Between::iterations}) {
      if (between != Keep::Between::passes && what != What::parameters) continue;
      for (const Where where : {Where::device, Where::stage, Where::host, Where::drives}) {
        for (const bool divided : {false, true}) result.push_back({what, where, between, divided});
      }
    }
  }
  return result;
}

/// The shortest gap in which a rule of the row holds.
std::string gap_of(const Row& row) {
  return gaps[static_cast<int>(row.what == What::parameters ? row.between : own_gap(row.what))];
}

std::string name_of(const Row& row) {
  return std::string(subjects[static_cast<int>(row.what)]) + " " +
         places[static_cast<int>(row.where)] + " " + gap_of(row) + (row.divided ? " divided" : "");
}

constexpr const char* reuse = "ZeRO-Infinity with a large stage3_max_reuse_distance";

/// Published systems that keep it so; empty: none was found.
std::string system_of(const Row& row) {
  static const std::map<std::string, const char*> systems = {
      {"parameters device passes divided", "ZeRO-3, FSDP"},
      {"parameters device micro-batches divided", "FSDP's SHARD_GRAD_OP"},
      {"parameters device iterations divided", "Megatron-LM's --overlap-param-gather"},
      {"parameters host passes", "ZeRO-Infinity on one rank"},
      {"parameters host passes divided", "ZeRO-Infinity"},
      {"parameters host micro-batches", reuse},
      {"parameters host micro-batches divided", "FSDP's CPUOffload with SHARD_GRAD_OP"},
      {"parameters drives micro-batches", reuse},
      {"parameters drives micro-batches divided", reuse},
      {"parameters drives passes", "ZeRO-Infinity on one rank"},
      {"parameters drives passes divided", "ZeRO-Infinity"},
      {"gradients device micro-batches divided", "ZeRO-2"},
      {"gradients host micro-batches", "ZeRO-Offload on one rank"},
      {"gradients host micro-batches divided", "ZeRO-Offload"},
      {"gradients drives micro-batches", "ZeRO-Infinity on one rank, after the last micro-batch"},
      {"gradients drives micro-batches divided", "ZeRO-Infinity, after the last micro-batch"},
      {"states device iterations divided", "ZeRO-1"},
      {"states host iterations", "ZeRO-Offload on one rank"},
      {"states host iterations divided", "ZeRO-Offload"},
      {"states drives iterations", "ZeRO-Infinity on one rank"},
      {"states drives iterations divided", "ZeRO-Infinity"},
      {"activations stage passes", "BPipe, MPress"},
      {"activations host passes", "vDNN"},
      {"activations drives passes", "SSDTrain"},
      {"checkpoints device passes divided", "P_a of ZeRO-R, Megatron-LM"},
      {"checkpoints host passes", "DeepSpeed's cpu_checkpointing"},
      {"checkpoints host passes divided", "P_a+cpu of ZeRO-R"},
      {"checkpoints drives passes", "LoHan, axolotl's activation_offloading: disk"}};
  const auto found = systems.find(name_of(row));
  const bool nothing = row.where == Where::device && !row.divided;
  if (found == systems.end()) return nothing ? "every framework" : "";
  return found->second;
}

constexpr const char* looked_at = "none in DeepSpeed, FSDP, Megatron-LM, SSDTrain, LoHan, axolotl";

constexpr const char* arguments = R"(
Why some ask for a schedule with a flush: without one a stage computes with several versions of its
weights, one for each micro-batch under way, and steps between them. Of divided weights each version
would be gathered and kept whole, which is what dividing them is to save. Of weights and states
elsewhere, each micro-batch would wait for a step that waits for copies. Activations that are away
would belong to several iterations at once. PipeDream and PipeDream-2BW, whose schedules these are,
have none of it (their papers, from memory).

Why some ask for one grid in equal parts: shards are runs of elements along the axes of a grid, and
a copy is one block for all devices of a stage, where an irregular stage has one for each. That is a
limit of this code: nnScaler divides states of such stages.
)";

constexpr const char* head = R"(# Residency

For whoever wants to know what can wait where between its uses, and what is refused, with which
words.

Each row was run: a GPT of four layers on two stages of two ranks (between micro-batches: on one
stage of four), lowered and, where it has a flush, trained for two iterations in double precision.
It agrees with one device to 1e-9. Divided means over data ranks, checkpoints over tensor ranks.
"Runs" without a flush means that the program passes all checks. A number names the refusal below,
in which `/keep` is the rule, and `/steps` what is said of the optimizer's steps.

How the last column was checked. Code was read of DeepSpeed
(`runtime/zero/partitioned_param_coordinator.py`, 03aecee8: what is used again within
`stage3_max_reuse_distance` stays whole from the forward to the backward pass, then goes back to
where its shards are) and of FSDP (`torch/distributed/fsdp/api.py`, 0aafd810); of Megatron-LM only
the list of options (`megatron/training/arguments.py`, d98e8a64); the documentation of axolotl;
abstracts of vDNN (arXiv:1602.08124), SSDTrain (2408.10013) and LoHan (2403.06504), and what BPipe's
authors write of it. MPress, the papers of ZeRO, and that systems for several ranks also run on one
are from memory.

Gaps that a subject does not have are left out. Gradients have none between passes, states none
within an iteration, activations and checkpoints none between iterations.
`tests/execute/residency_test.cpp` writes this page, and compares it.

| what | where | shortest gap | divided | flush | no flush | flush, unequal parts )"
                             R"(| no flush, unequal parts | published systems |
|---|---|---|---|---|---|---|---|---|
)";

constexpr const char* head_of_senseless = R"(
## What the meaning of a key rules out

These are refused as they are read, whatever the plan is, and have no row above.

| | rows | refusal |
|---|---|---|
)";

constexpr const char* head_of_pairs = R"(
## Pairs of rules

Both rules in one plan: the same GPT on one stage of two data ranks and two tensor ranks.

)";

void append_senseless(std::ostringstream& text, Refusals& refusals) {
  text << head_of_senseless;
  for (const Senseless& one : senseless()) {
    int count = 0;
    for (const Row& row : all_rows()) {
      if (!one.covers(row)) continue;
      ++count;
      INFO(name_of(row));
      CHECK(!outcome(row, settings[0]).empty());
    }
    text << "| " << one.because << " | " << count << " | "
         << refusals.cell(outcome(one.example, settings[0])) << " |\n";
  }
}

/// Rules that are said in pairs, with names for them.
const std::vector<std::pair<const char*, Row>>& paired() {
  using Between = Keep::Between;
  constexpr auto passes = Between::passes;
  static const std::vector<std::pair<const char*, Row>> all = {
      {"parameters divided", {What::parameters, Where::device, passes, true}},
      {"parameters divided between micro-batches",
       {What::parameters, Where::device, Between::micro_batches, true}},
      {"parameters divided between iterations",
       {What::parameters, Where::device, Between::iterations, true}},
      {"parameters on the host", {What::parameters, Where::host, passes, false}},
      {"parameters on drives", {What::parameters, Where::drives, passes, false}},
      {"gradients divided", {What::gradients, Where::device, passes, true}},
      {"gradients on drives", {What::gradients, Where::drives, passes, false}},
      {"states divided", {What::states, Where::device, passes, true}},
      {"states on the host", {What::states, Where::host, passes, false}},
      {"states on drives", {What::states, Where::drives, passes, false}},
      {"activations on the host", {What::activations, Where::host, passes, false}},
      {"activations on drives", {What::activations, Where::drives, passes, false}},
      {"checkpoints divided", {What::checkpoints, Where::device, passes, true}},
      {"checkpoints on the host", {What::checkpoints, Where::host, passes, false}}};
  return all;
}

std::string outcome_of_pair(const Row& one, const Row& other) {
  return outcome([&] {
    const bool recompute = one.what == What::checkpoints || other.what == What::checkpoints;
    Plan plan = lowering::plan_of(
        four_layers(),
        std::string(R"({"data": 2, "tensor": 2)") + (recompute ? R"(, "recompute": "full"})" : "}"),
        micro_batches);
    say(plan, one);
    say(plan, other);
    return plan;
  });
}

void append_pairs(std::ostringstream& text, Refusals& refusals) {
  text << head_of_pairs << "| |";
  for (std::size_t i = 0; i + 1 < paired().size(); ++i) text << " " << i + 1 << " |";
  text << "\n|---|";
  for (std::size_t i = 0; i + 1 < paired().size(); ++i) text << "---|";
  text << "\n";
  for (std::size_t i = 0; i < paired().size(); ++i) {
    text << "| " << i + 1 << ": " << paired()[i].first << " |";
    for (std::size_t j = 0; j + 1 < paired().size(); ++j) {
      INFO(paired()[i].first << " and " << paired()[j].first);
      text << " "
           << (j < i ? refusals.cell(outcome_of_pair(paired()[j].second, paired()[i].second))
                     : std::string());
      text << (j < i ? " |" : "|");
    }
    text << "\n";
  }
}

void append_unpublished(std::ostringstream& text, int unpublished, int rows) {
  text << "\nOf " << rows << " rows " << unpublished << " ("
       << std::lround(100.0 * unpublished / rows) << " %) have no published system.\n";
  CHECK(10 * unpublished <= rows);
}

std::string page() {
  Refusals refusals;
  std::ostringstream text;
  text << head;
  int rows = 0, unpublished = 0;
  for (const Row& row : all_rows()) {
    if (!makes_sense(row)) continue;
    INFO(name_of(row));
    text << "| " << subjects[static_cast<int>(row.what)] << " | "
         << places[static_cast<int>(row.where)] << " | " << gap_of(row) << " | "
         << (row.divided ? "yes" : "no");
    for (const Setting& setting : settings) text << " | " << refusals.cell(outcome(row, setting));
    const std::string system = system_of(row);
    text << " | " << (system.empty() ? looked_at : system) << " |\n";
    unpublished += system.empty() ? 1 : 0;
    ++rows;
  }
  append_unpublished(text, unpublished, rows);
  append_senseless(text, refusals);
  append_pairs(text, refusals);
  refusals.append_to(text);
  text << arguments;
  return text.str();
}

}  // namespace

TEST_CASE("what waits anywhere is used as on one device, and the page tells all of it") {
  check_page("residency.md", page());
}

}  // namespace stratagem::execute::residency_test
