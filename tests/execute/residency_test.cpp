// What can wait where: every combination of subject, place, gap and division is run, and
// docs/reference/residency.md has what came of it.
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/catch.hpp"
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

const model::Graph& tiny_gpt() {
  static const model::Graph graph = model::gpt({.layers = 4,
                                                .hidden = 16,
                                                .heads = 4,
                                                .sequence = 8,
                                                .vocabulary = 24,
                                                .batch = 4,
                                                .tied = false});
  return graph;
}

struct Row {
  What what;
  Where where;
  Keep::Between between;
  bool divided;
};

/// What a plan is like besides: its schedule, and whether its stages share one grid in equal parts.
enum class Setting : std::uint8_t { flush, no_flush, irregular };

/// Four devices: two stages of two ranks, along the axis over which the subject can be divided.
Plan base(What what, Setting setting) {
  const std::string ranks = what == What::checkpoints ? "tensor" : "data";
  const std::string schedule = setting == Setting::no_flush ? "pipedream" : "1f1b";
  const std::string recompute = what == What::checkpoints ? R"(, "recompute": "full")" : "";
  Plan plan = lowering::plan_of(
      tiny_gpt(),
      "{\"" + ranks + R"(": 2, "pipeline": 2, "schedule": ")" + schedule + "\"" + recompute + "}",
      micro_batches);
  return setting == Setting::irregular ? lowering::with_lists(std::move(plan)) : std::move(plan);
}

/// States, and the gradients before them, are where their steps are, in their parts: what that says
/// needs no rule.
void say(Plan& plan, const Row& row) {
  const std::vector<std::string> axes = {row.what == What::checkpoints ? "tensor" : "data"};
  const bool of_steps = row.what == What::states || row.what == What::gradients;
  const bool away = row.where == Where::host || row.where == Where::drives;
  plan.steps.on_host = away && (of_steps || row.what == What::parameters);
  if (row.divided && row.what != What::checkpoints && row.what != What::activations)
    plan.steps.divided = axes;
  Keep rule{.what = row.what, .between = row.between, .where = row.where};
  if (row.divided) rule.divided = axes;
  if (row.where == Where::stage) rule.stage = 1;
  if (row.what == What::activations) rule.segments = {1, 2};  // of stage 0
  if (of_steps && row.where == Where::host) rule.where = Where::device;
  if (row.what == What::states) rule.divided.clear();
  const bool rest = rule.where == Where::device && (rule.divided.empty() || of_steps);
  const bool said = rest && !(row.what == What::gradients && row.divided);
  if (!said) plan.residency.keep(std::move(rule));
}

/// "", or why the plan is refused.
std::string outcome(const Row& row, Setting setting) {
  static std::map<bool, Trained> references;
  const bool recomputes = row.what == What::checkpoints;
  try {
    Plan plan = base(row.what, setting);
    say(plan, row);
    const program::Program program = lowering::lower(plan, lowering::plain_stack(), {});
    if (setting == Setting::no_flush) return "";  // one device has other versions of the weights
    if (std::string why = refusal(program, plan.graph()); !why.empty())
      return "simulated, not executed: " + why;
    static int number = 0;
    if (number++ % stride(5) != 0) return "";
    if (!references.contains(recomputes)) {
      const Plan one = lowering::plan_of(tiny_gpt(), "{}", micro_batches);
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

constexpr std::array<const char*, 5> subjects = {"parameters", "gradients", "states", "activations",
                                                 "checkpoints"};
constexpr std::array<const char*, 5> places = {"device", "stage", "peers", "host", "drives"};

std::vector<Row> rows() {
  std::vector<Row> result;
  for (const What what :
       {What::parameters, What::gradients, What::states, What::activations, What::checkpoints}) {
    for (const auto between : {Keep::Between::passes, Keep::Between::iterations}) {
      if (between == Keep::Between::iterations && what != What::parameters) continue;
      for (const Where where : {Where::device, Where::stage, Where::host, Where::drives}) {
        for (const bool divided : {false, true}) result.push_back({what, where, between, divided});
      }
    }
  }
  return result;
}

/// The shortest gap in which a rule of the row holds.
std::string gap_of(const Row& row) {
  if (row.what == What::gradients) return "micro-batches";
  if (row.what == What::states || row.between == Keep::Between::iterations) return "iterations";
  return "passes";
}

/// Published systems that keep it so; empty: none that we know.
std::string system_of(const Row& row) {
  const std::map<std::string, const char*> systems = {
      {"parameters device passes divided", "ZeRO-3, FSDP"},
      {"parameters device iterations divided", "Megatron-LM's --overlap-param-gather"},
      {"parameters host passes", "ZeRO-Infinity on one rank"},
      {"parameters host passes divided", "ZeRO-Infinity"},
      {"parameters drives passes", "ZeRO-Infinity on one rank"},
      {"parameters drives passes divided", "ZeRO-Infinity"},
      {"gradients device micro-batches divided", "ZeRO-2"},
      {"gradients host micro-batches", "ZeRO-Offload on one rank"},
      {"gradients host micro-batches divided", "ZeRO-Offload"},
      {"gradients drives micro-batches divided", "ZeRO-Infinity"},
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
      {"checkpoints host passes divided", "P_a+cpu of ZeRO-R"}};
  const std::string key = std::string(subjects[static_cast<int>(row.what)]) + " " +
                          places[static_cast<int>(row.where)] + " " + gap_of(row) +
                          (row.divided ? " divided" : "");
  const auto found = systems.find(key);
  const bool nothing = row.where == Where::device && !row.divided;
  if (found == systems.end()) return nothing ? "every framework" : "";
  return found->second;
}

constexpr const char* head = R"(# Residency

For whoever wants to know what can wait where between its uses, and what is refused, with which
words.

Each row was run: a GPT of four layers on two stages of two ranks, lowered and, where it has a
flush, trained for two iterations in double precision. It agrees with one device to 1e-9. Divided
means over data ranks, checkpoints over tensor ranks. "Runs" without a flush means that the program
passes all checks. A number names the refusal below.

Gaps that a subject does not have are left out. Gradients have none between passes, states none
within an iteration, activations and checkpoints none between iterations.
`tests/execute/residency_test.cpp` writes this page, and compares it.

| what | where | shortest gap | divided | with a flush | without a flush | stages of unequal parts | published systems |
|---|---|---|---|---|---|---|---|
)";

std::string page() {
  std::vector<std::string> refusals;
  const auto cell = [&](const Row& row, Setting setting) -> std::string {
    const std::string why = outcome(row, setting);
    if (why.empty()) return "runs";
    const auto found = std::ranges::find(refusals, why);
    const auto number = found - refusals.begin();
    if (found == refusals.end()) refusals.push_back(why);
    return std::to_string(number + 1);
  };
  std::ostringstream text;
  text << head;
  for (const Row& row : rows()) {
    INFO(subjects[static_cast<int>(row.what)] << " " << places[static_cast<int>(row.where)] << " "
                                              << gap_of(row) << " " << row.divided);
    text << "| " << subjects[static_cast<int>(row.what)] << " | "
         << places[static_cast<int>(row.where)] << " | " << gap_of(row) << " | "
         << (row.divided ? "yes" : "no");
    for (const Setting setting : {Setting::flush, Setting::no_flush, Setting::irregular})
      text << " | " << cell(row, setting);
    const std::string system = system_of(row);
    text << " | " << (system.empty() ? "none that we know" : system) << " |\n";
  }
  text << "\n## Refusals\n\n";
  for (std::size_t i = 0; i < refusals.size(); ++i) text << i + 1 << ". `" << refusals[i] << "`\n";
  return text.str();
}

}  // namespace

TEST_CASE("what waits anywhere is used as on one device, and the page tells all of it") {
  const std::string made = page();
  std::ifstream file("docs/reference/residency.md");
  const std::string written{std::istreambuf_iterator<char>(file), {}};
  const std::filesystem::path fresh = std::filesystem::temp_directory_path() / "residency.md";
  if (made != written) std::ofstream(fresh) << made;
  INFO("the page as it should be: " << fresh.string());
  CHECK(made == written);
}

}  // namespace stratagem::execute::residency_test
