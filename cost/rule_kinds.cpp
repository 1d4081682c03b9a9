// Declares kinds of rules: their keys, what they are about and what they act on.
#include "cost/rule_kinds.hpp"

#include <algorithm>
#include <cstddef>

#include "cost/kernel_rules.hpp"
#include "cost/rule_writing.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::cost {
namespace {

std::vector<std::string> random_state_moments() {
  std::vector<std::string> moments = {"before recomputed passes", "before recomputation",
                                      "after recomputation"};
  for (const std::string& name : model::stack_names()) {
    moments.push_back("before " + name);
    moments.push_back("after " + name);
  }
  return moments;
}

/// What collectives between operators work on.
Format<bool> activations_or_gradients() {
  return choice<bool>({{"activations", false}, {"input gradients", true}});
}

RuleKind collectives_beside() {
  using enum CollectiveKind;
  std::vector<std::pair<std::string, CollectiveKind>> kinds;
  for (const CollectiveKind one : {all_reduce, all_gather, reduce_scatter, all_to_all})
    kinds.emplace_back(to_text(one), one);
  return kind<CollectiveBeside>(
      {"a collective between operators that a computation runs beside; all others start after all "
       "computations issued before them",
       "when the collective starts", "", 2},
      {{"collective", &CollectiveBeside::kind, choice(kinds), "its kind", must_be_there},
       {"of", &CollectiveBeside::of_gradients, activations_or_gradients(), "what it works on",
        must_be_there},
       {"beside", &CollectiveBeside::beside,
        choice<model::Pass>({{"input gradients", model::Pass::input_gradient},
                             {"weight gradients", model::Pass::weight_gradient}}),
        "the computation that it does not wait for: this gradient of the operator whose input "
        "gradient it completes, or whose gradient reads the activation",
        must_be_there}});
}

RuleKind gathers_in_pieces() {
  using By = GatherInPieces::By;
  return kind<GatherInPieces>(
      {"what tensor ranks gather for the product behind it is cut with the product into pieces of "
       "tokens, where all ranks of a stage do the same; each rank multiplies its own share first",
       "the product runs beside the gather", ""},
      {{"gathers_in_pieces_of", &GatherInPieces::of_gradients, activations_or_gradients(),
        "what is gathered", must_be_there},
       {"by", &GatherInPieces::by,
        choice<By>(
            {{"ring exchange", By::ring_exchange}, {"own share first", By::own_share_first}}),
        "`ring exchange`: ranks pass shares on by copy engines, and each is multiplied when it has "
        "come, on streams whose kernels run beside each other; `own share first`: one gather runs "
        "beside the product of the own share, the rest follows in one product of two ranks, in two "
        "of more",
        must_be_there}});
}

RuleKind scatters_in_pieces() {
  return kind<ScatterInPieces>(
      {"products of forward passes whose partial results tensor ranks reduce-scatter next are cut "
       "with that into pieces of tokens, where all ranks of a stage do the same",
       "a piece is scattered beside the product of the next", "", 0},
      {{"scatters_in_pieces", &ScatterInPieces::pieces, whole(2, 64), "how many, all equal",
        must_be_there},
       {"multiprocessors", &ScatterInPieces::multiprocessors, whole(0, 1000),
        "multiprocessors on which the product does not run, since the collective has them; 0: both "
        "share all, as others do"}});
}

RuleKind stage_shares() {
  return kind<StageShares>(
      {"what tensor ranks hold alike they send to another pipeline stage in shares, which the "
       "receivers gather; otherwise each sends all of it",
       "bytes sent between stages, and gathers", "the buffers of the shares"},
      {{"send_shares_of", itself<StageShares>,
        choice<StageShares>(
            {{"activations", StageShares::activations}, {"gradients", StageShares::gradients}}),
        "what is sent", must_be_there}});
}

RuleKind held_inputs() {
  const auto check = [](const HeldInputs& rule, const JsonReader& reader) {
    if (rule.of == rule.until)
      reader.at("until").fail("another kind than the one whose inputs are held");
  };
  return kind<HeldInputs>(
      {"what an operator reads lives until one behind it in its segment has run, since a variable "
       "of the framework's code names it",
       "", "when the buffer is freed"},
      {{"hold_inputs_of", &HeldInputs::of, name_of("a kind of operator", model::stack_names()),
        "the operator that reads it", must_be_there},
       {"until", &HeldInputs::until, name_of("a kind of operator", model::stack_names()),
        "the operator behind it", must_be_there}},
      check);
}

RuleKind kept_outputs() {
  return kind<KeptOutputs>(
      {"what an operator writes in a forward pass lives on until a later micro-batch's takes its "
       "place",
       "", "as many such buffers, all the time"},
      {{"keep_outputs_of", &KeptOutputs::of,
        name_of("a kind of forward operator", model::stack_names("F")), "the operator",
        must_be_there},
       {"passes", &KeptOutputs::passes, whole(1, 100), "after so many micro-batches",
        must_be_there}});
}

RuleKind lifetimes() {
  return kind<Lifetime>(
      {"how long buffers live. Otherwise gradients of weights live all the time, and what a "
       "pipeline stage sends lives until it is sent",
       "a copy of the share that is kept, where shares are sent",
       "when the buffers are freed and allocated"},
      {{"lifetime", itself<Lifetime>,
        choice<Lifetime>(
            {{"gradients until the step", Lifetime::gradients_until_step},
             {"sent activations until their gradients", Lifetime::sent_until_gradients},
             {"received activations until the next", Lifetime::received_until_next}}),
        "what lives until when", must_be_there}});
}

}  // namespace

std::vector<std::pair<std::string, HostWaits>> host_waits_words() {
  return {{"before each micro-batch", HostWaits::each_micro_batch},
          {"before each pass", HostWaits::each_pass},
          {"before each pass that receives", HostWaits::each_received_pass},
          {"for each exchange of stages", HostWaits::each_exchange},
          {"for each exchange of stages, unless interleaved",
           HostWaits::each_exchange_unless_interleaved},
          {"for each launch", HostWaits::each_launch}};
}

namespace {

RuleKind host_waits() {
  return kind<HostWaits>(
      {"where the host waits for the device before it launches more", "the launches that follow",
       "which blocks an allocator finds free"},
      {{"host_waits", itself<HostWaits>, choice<HostWaits>(host_waits_words()),
        "where; a pass that receives begins with reading what describes a tensor", must_be_there}});
}

RuleKind pass_work() {
  return kind<PassWork>(
      {"what the host does for each forward and each backward pass of a stage besides launching "
       "operators: calling it, starting automatic differentiation, handing over tensors",
       "the host's time", "", 0},
      {{"pass_takes_launches", &PassWork::launches, whole(1, 10'000),
        "it takes as long as so many launches; of passes that run together, one", must_be_there}});
}

RuleKind communicators() {
  return kind<Communicators>(
      {"communicators beside those of the plan's collectives", "", "their buffers"},
      {{"communicator", &Communicators::group,
        choice<RankGroup>({{"world", RankGroup::world},
                           {"data", RankGroup::data},
                           {"tensor", RankGroup::tensor},
                           {"pipeline", RankGroup::pipeline},
                           {"model", RankGroup::model}}),
        "its ranks: all; those that differ in their samples alone; the tensor ranks of a stage; "
        "the stages of a share of the batch; all ranks of a share",
        must_be_there},
       {"number", &Communicators::number, whole(1, 100), "how many of the same ranks"}});
}

RuleKind shard_collectives() {
  return kind<ShardCollectives>(
      {"how parameters of ZeRO 3 are gathered and their gradients scattered; otherwise by segment, "
       "queued, without copies",
       "the number of collectives, copies, waits of the host",
       "the second buffers, and those of one rank", 0},
      {{"shard_collectives", &ShardCollectives::by_weight,
        choice<bool>({{"by segment", false}, {"by weight", true}}),
        "what has a collective of its own: all of a segment or of a bucket of gradients, or each "
        "weight",
        must_be_there},
       {"gathers", &ShardCollectives::gathers_wait,
        choice<bool>({{"queued", false}, {"waited for", true}}),
        "whether the host, before each gather, has what is gathered zeroed and waits for "
        "computations and reductions so far",
        must_be_there},
       {"kernels_per_rank", &ShardCollectives::kernels_per_rank, whole(0, 100),
        "kernels that copy each rank's part, from a second whole buffer after a gather and into "
        "one before a reduce-scatter",
        must_be_there},
       {"of_one_rank", &ShardCollectives::of_one_rank, flag(),
        "whether a rank that nothing divides weights with gathers them, too, into buffers of its "
        "own"}});
}

RuleKind gathered_weights() {
  return kind<GatheredWeights>(
      {"what ranks gather that divide weights which products read in another type (ZeRO 3 with fp8 "
       "and less); otherwise such plans are refused",
       "bytes of gathers", "gathered weights"},
      {{"gather_weights", itself<GatheredWeights>,
        choice<GatheredWeights>(
            {{"as products read them", GatheredWeights::as_products_read_them}}),
        "copies in that type, one for each pass, of shards that are cast after the step",
        must_be_there}});
}

RuleKind step_gathers() {
  return kind<StepGathers>(
      {"how ranks gather what each has stepped of weights that all keep (ZeRO 1 and 2); otherwise "
       "all in one collective, without copies",
       "the number of gathers, copies", "the second buffers", 0},
      {{"step_gathers", &StepGathers::bucket, size(),
        "there are as many gathers, alike in size, as this goes into all weights, at least one",
        must_be_there},
       {"kernels_per_rank", &StepGathers::kernels_per_rank, whole(0, 100),
        "kernels that copy each rank's part from a second whole buffer", must_be_there}});
}

RuleKind step_sums() {
  return kind<StepSums>(
      {"what ranks sum up that keep whole gradients but step a share each (ZeRO 1); otherwise "
       "shares, in reduce-scatters. With steps on the host it has no effect",
       "all-reduces, which move twice the bytes", ""},
      {{"step_sums", itself<StepSums>,
        choice<StepSums>({{"whole gradients", StepSums::whole_gradients}}),
        "all of a gradient that a rank keeps", must_be_there}});
}

RuleKind extra_states() {
  using With = ExtraState::With;
  return kind<ExtraState>(
      {"what is kept of every parameter beside the states of the precision and the optimizer",
       "traffic of steps on the host, of what stands with the optimizer's states",
       "bytes per parameter"},
      {{"state", &ExtraState::name, some_text(), "its name", must_be_there},
       {"bytes", &ExtraState::bytes, size_per_element(), "of one parameter", must_be_there},
       {"with", &ExtraState::with,
        choice<With>({{"optimizer states", With::states},
                      {"gradients", With::gradients},
                      {"steps", With::steps},
                      {"steps, until the next iteration", With::until_next}}),
        "what it is kept with: the states of the parameters that a device steps, all the time and "
        "where they step; the gradients of all parameters that a device holds, all the time; the "
        "steps of a device, from the first to the last, or on until the next iteration begins",
        must_be_there},
       {"copies_gradients", &ExtraState::copies_gradients, flag(),
        "are they copies of gradients? Then there are none where gradients have as many bytes",
        "false"}});
}

RuleKind random_state() {
  return kind<RandomStateCopies>(
      {"copies of the random generator's state between device and host, each of which the host "
       "waits for, so that a recomputed pass draws the same numbers",
       "the copies, waits of the host", ""},
      {{"random_state", &RandomStateCopies::when,
        name_of("`before recomputed passes`, `before recomputation`, `after recomputation`, or "
                "`before` or `after` a kind of operator",
                random_state_moments()),
        "when they are made, for each group of operators that is recomputed together, or for each "
        "operator",
        must_be_there},
       {"copies", &RandomStateCopies::copies, whole(1, 1000), "how many"},
       {"size", &RandomStateCopies::size, size(), "of one copy", must_be_there}});
}

RuleKind gather_buffers() {
  return kind<GatherBuffers>(
      {"what tensor ranks gather between operators, where all ranks of a stage do the same, lies "
       "in buffers that live all the time, each as large as the largest of it, unless a later pass "
       "reads it",
       "", "as many such buffers, and none for each gather", 0},
      {{"gather_buffers", &GatherBuffers::number, whole(1, 100), "how many", must_be_there}});
}

/// Read by who knows the base (cost/stack.cpp).
RuleKind drop() {
  const Values rule = {Json::object().set("type", "object").set("minProperties", 1), "object", {}};
  RuleKind says{{"takes back rules of the base", "", "", 0}, {}, {}};
  says.keys = {
      {rule, "drop", "what such a rule says, with at least one of its keys", must_be_there},
      kernels().keys.back()};
  return says;
}

}  // namespace

const std::vector<RuleKind>& rule_kinds() {
  static const std::vector<RuleKind> kinds = {kernels(),
                                              fusions(),
                                              unaligned_batches(),
                                              grouped_products(),
                                              cuda_graph(),
                                              preferred_attention(),
                                              collectives_beside(),
                                              gathers_in_pieces(),
                                              scatters_in_pieces(),
                                              gather_buffers(),
                                              stage_shares(),
                                              held_inputs(),
                                              kept_outputs(),
                                              lifetimes(),
                                              host_waits(),
                                              pass_work(),
                                              communicators(),
                                              shard_collectives(),
                                              gathered_weights(),
                                              step_gathers(),
                                              step_sums(),
                                              extra_states(),
                                              random_state(),
                                              drop()};
  return kinds;
}

Json schema_of_rules() {
  Json kinds = Json::array();
  for (const RuleKind& kind : rule_kinds()) kinds.push(schema_of(kind.keys, kind.sentence));
  return Json::object()
      .set("description", "facts, each with its reason; over a base those that differ")
      .set("type", "array")
      .set("items", Json::object().set("anyOf", kinds));
}

std::string table_of_rules() {
  std::string table = "| kind | what it says | in time | in memory |\n|---|---|---|---|\n";
  for (const RuleKind& kind : rule_kinds()) {
    table += "| `" + kind.name() + "` | " + kind.sentence + " | " + kind.time + " | " +
             kind.memory + " |\n";
  }
  table += "\n| key | values | default | |\n|---|---|---|---|\n";
  for (const RuleKind& kind : rule_kinds()) {
    // All kinds have the last two, `precisions` and `because`.
    const auto shared = std::min<std::ptrdiff_t>(2, std::ssize(kind.keys) - 1);
    std::vector<OptionText> own(kind.keys.begin(), kind.keys.end() - shared);
    const std::vector<OptionText> first = {own.front()};
    own.erase(own.begin());
    table += rows_of(first) + rows_of(own, "`" + kind.name() + "`: ");
  }
  return table;
}

}  // namespace stratagem::cost
