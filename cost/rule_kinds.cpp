// Declares kinds of rules: their keys, what they are about and what they act on.
#include "cost/rule_kinds.hpp"

#include "cost/attention.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::cost {
namespace {

std::vector<std::string> operators_and_updates() {
  std::vector<std::string> names = model::stack_names();
  names.insert(names.end(), {"gradient_accumulation", "optimizer_step"});
  return names;
}

std::vector<std::string> random_state_moments() {
  std::vector<std::string> moments = {"before recomputed passes", "before recomputation",
                                      "after recomputation"};
  for (const std::string& name : model::stack_names()) {
    moments.push_back("before " + name);
    moments.push_back("after " + name);
  }
  return moments;
}

/// One of many words: neither tables nor errors list them all.
Format<std::string> name_of(const std::string& what, const std::vector<std::string>& known) {
  Format<std::string> format = text();
  format.words = what;
  format.read = [=](const JsonReader& reader) {
    check_word(reader, reader.text(), known, what);
    return reader.text();
  };
  return format;
}

/// A name that is not empty.
Format<std::string> some_text() {
  Format<std::string> format = text();
  format.schema.set("minLength", 1);
  format.read = [](const JsonReader& reader) {
    if (reader.text().empty()) reader.fail("some text", reader.dump());
    return reader.text();
  };
  return format;
}

Format<Bytes> size_per_element() {
  Format<Bytes> format = size();
  format.words = "size of at most 1000 B";
  format.read = [read = format.read](const JsonReader& reader) {
    const Bytes bytes = read(reader);
    if (bytes > 1000_B) reader.fail("at most 1000 B an element", reader.dump());
    return bytes;
  };
  return format;
}

Format<double> number() {
  return {{Json::object().set("type", "number"), "a number"},
          [](const JsonReader& reader) { return reader.number(); }};
}

/// The value itself, of rules that say one word.
template <typename T>
constexpr auto itself = [](T& value) -> T& { return value; };

template <typename Written>
using Check = void (*)(const Written&, const JsonReader&);

/// A kind whose rules are made by options; every rule says why, too.
template <typename Written>
RuleKind kind(
    const RuleText& text, const OptionList<Written>& options,
    Check<Written> check = [](const Written&, const JsonReader&) {}) {
  const Option<std::string> because{"because", itself<std::string>, some_text(),
                                    "why: file, function and version of the framework's code",
                                    must_be_there};
  RuleKind says{text, {options.begin(), options.end()}, {}};
  says.keys.push_back(because);
  says.read = [=](const JsonReader& reader) -> Rule {
    Written written = read_object(options, reader);
    std::string why;
    because.read(reader.at(because.key), why);
    check(written, reader);
    return written;
  };
  return says;
}

RuleKind kernels() {
  const auto check = [](const OperatorKernels& rule, const JsonReader& reader) {
    for (const char* key : {"extra_traffic", "synchronizations", "slowdown"}) {
      if (rule.of == "gradient_accumulation" && reader.has(key))
        reader.at(key).fail("no such key of gradient_accumulation");
    }
    const bool update = rule.of == "gradient_accumulation" || rule.of == "optimizer_step";
    for (const char* key : {"temporary", "kept_buffers"}) {
      if (update && reader.has(key))
        reader.at(key).fail("no such key of " + rule.of, reader.at(key).dump());
    }
    if (rule.kept_buffers > 0 && std::ranges::count(model::stack_names("F"), rule.of) == 0)
      reader.at("kept_buffers").fail("no such key but of forward operators");
    if (update && rule.in_library)
      reader.at("in_library").fail("no such key of " + rule.of, reader.at("in_library").dump());
    if (rule.of != "optimizer_step" && reader.has("flat_shares"))
      reader.at("flat_shares").fail("no such key of " + rule.of, reader.at("flat_shares").dump());
    if (rule.of == "optimizer_step" && reader.has("extra_passes"))
      reader.at("extra_passes").fail("extra_traffic of optimizer_step in place of passes");
  };
  Format<std::string> names = name_of("a kind of operator", operators_and_updates());
  names.schema = words(operators_and_updates()).schema;
  return kind<OperatorKernels>(
      {"kernels of a kind of operator", "launches, device memory traffic, rates, waits of the host",
       "temporary buffers, and such as live all the time"},
      {{"operator", &OperatorKernels::of, names,
        "the operator, `.B` or `.W` appended for the gradient of its input or weight; or "
        "`optimizer_step`, of one parameter tensor, or `gradient_accumulation`, of one gradient in "
        "each micro-batch",
        must_be_there},
       {"launches", &OperatorKernels::launches, whole(0),
        "kernels; of a step with those of an optimizer in one pass"},
       {"extra_passes", &OperatorKernels::extra_passes, number(),
        "passes over the largest tensor beyond reading inputs and writing outputs once; of an "
        "accumulation: passes over the gradient"},
       {"extra_traffic", &OperatorKernels::extra_traffic, size_per_element(),
        "device memory traffic for each element of the largest tensor, or for each parameter",
        "none"},
       {"synchronizations", &OperatorKernels::synchronizations, whole(0, 1000),
        "how often the host waits for the kernels, as when it reads a result"},
       {"slowdown", &OperatorKernels::slowdown, positive(1'000),
        "device time over that of the profile's kernels, where another implementation runs"},
       {"temporary", &OperatorKernels::temporary, size_per_element(),
        "buffers that live while the kernels run, for each element of the first result", "none"},
       {"kept_buffers", &OperatorKernels::kept_buffers, whole(0, 100),
        "of a forward operator: buffers of the framework that live all the time, each as large as "
        "the largest first result"},
       {"flat_shares", &OperatorKernels::flat_shares, flag(),
        "of `optimizer_step`: are the shares that ranks step (ZeRO 1 and 2) pieces of one flat "
        "buffer? Then each of n ranks launches and waits for one tensor in n, otherwise for its "
        "piece of every tensor"},
       {"in_library", &OperatorKernels::in_library, flag(),
        "does a library launch the kernels within the call of another operator? Then the host "
        "takes the time of a tiny kernel for each (`kernel_floor`), not a launch of the "
        "framework"}},
      check);
}

RuleKind fusions() {
  const auto check = [](const Fusion& rule, const JsonReader& reader) {
    if (!rule.kernel.empty() && std::ranges::count(rule.kinds, rule.kernel) == 0)
      reader.at("kernel").fail("one of the kinds that are fused", rule.kernel);
  };
  return kind<Fusion>(
      {"operators that follow each other and run as one kernel",
       "no launch and no traffic of what passes between them",
       "no buffer for what passes between them"},
      {{"fuse", &Fusion::kinds,
        list_of<std::string>(name_of("kinds of operators", model::stack_names()), 2),
        "their kinds in order; each reads what the one before it wrote", must_be_there},
       {"kernel", &Fusion::kernel, name_of("kinds of operators", model::stack_names()),
        "the one of them whose kernel it is, as fast as that one's", "the last"}},
      check);
}

RuleKind unaligned_batches() {
  return kind<UnalignedBatches>(
      {"how batches of products in 16 bits, as those of attention's heads, are computed where an "
       "operand has rows that do not begin at multiples of 16 bytes; otherwise like all other "
       "products",
       "the rate of these products", ""},
      {{"unaligned_batches", itself<UnalignedBatches>,
        choice<UnalignedBatches>({{"in fp32", UnalignedBatches::in_fp32}}),
        "without tensor cores, at the rates of fp32 products", must_be_there}});
}

RuleKind grouped_products() {
  return kind<GroupedProducts>(
      {"how products are launched whose matrices are one for each expert; otherwise as one kernel",
       "the host's time", ""},
      {{"grouped_products", itself<GroupedProducts>,
        choice<GroupedProducts>({{"one by one", GroupedProducts::one_by_one}}),
        "a launch for each expert, in a loop of a library, on streams beside each other",
        must_be_there}});
}

RuleKind cuda_graph() {
  return kind<CudaGraph>(
      {"operators that CUDA graphs have: those that follow each other are one launch, up to one on "
       "which the host waits",
       "the host's time", "", 0},
      {{"cuda_graph", &CudaGraph::operators, list_of<std::string>(some_text(), 1),
        "patterns of their names within a layer (`*` is any text), such as `attention.*`; of their "
        "gradients, too",
        must_be_there}});
}

RuleKind preferred_attention() {
  const std::vector<std::string> names(attention_implementations.begin(),
                                       attention_implementations.end());
  std::string known;
  for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
  const Format<std::string> name = name_of("implementations: " + known, names);
  return kind<PreferredAttention>(
      {"which implementation of fused attention runs; otherwise FlashAttention-2",
       "the rate of fused attention", "", 0},
      {{"attention", &PreferredAttention::implementations, list_of<std::string>(name, 1),
        "the first of them that the profile knows; where it knows none, the only one that it does "
        "know",
        must_be_there}});
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
    std::vector<OptionText> own(kind.keys.begin(), kind.keys.end() - 1);  // `because` is all kinds'
    const std::vector<OptionText> first = {own.front()};
    own.erase(own.begin());
    table += rows_of(first) + rows_of(own, "`" + kind.name() + "`: ");
  }
  return table;
}

}  // namespace stratagem::cost
