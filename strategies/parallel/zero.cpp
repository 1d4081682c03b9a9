// ZeRO: data-parallel ranks keep shards of what belongs to the weights.
#include <string>
#include <utility>
#include <vector>

#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {
namespace {

/// op-trans of the optimizer's steps (stage 1), of gradients between micro-batches (2), and of
/// parameters between passes (3), over all ranks that would keep the same: those that divide the
/// batch, the tokens or, for what is not of an expert, the experts. The lowering finds
/// reduce-scatters of gradients, and gathers of weights: after the steps, before their first use,
/// or, in stage 3, before each pass of a segment. That is 2, 2, 2 and 3 times the parameters per
/// rank and step. Parameters may also stay whole, or be divided over fewer ranks, from a forward
/// pass to the backward pass, which then gathers nothing, or from those. Where there is one such
/// rank nothing is divided, and only a framework that gathers nonetheless (cost::ShardCollectives)
/// does anything in stage 3. Stages 2 and 3 reduce the gradients of every micro-batch. Sources:
/// Rajbhandari et al., ZeRO, SC 2020, arXiv:1910.02054; groups of ranks, that is hybrid sharding:
/// Zhao et al., PyTorch FSDP, VLDB 2023, arXiv:2304.11277, section 3.2.2; secondary parts: Wang et
/// al., ZeRO++, arXiv:2306.10209, section 3.2.
void divide_weights(Plan& plan, const Options& options) {
  if (options.zero.stage == 0) return;
  const int together = options.zero.ranks > 0 ? options.zero.ranks : options.data / options.expert;
  std::vector<std::string> axes;
  if (together > 1) axes.emplace_back("data");
  if (options.zero.after_forward > 1) axes.emplace_back("group");
  if (options.expert > 1) axes.emplace_back("expert");
  if (options.context > 1) axes.emplace_back("context");
  if (size_of(options, "sp") > 1) axes.emplace_back("ulysses");
  const bool gathers = options.zero.stage == 3 && options.offload.parameters == HostPlace::none;
  if (axes.empty() && !gathers) return;
  plan.steps.divided = axes;
  if (options.zero.stage >= 2 && !axes.empty())
    plan.residency.keep({.what = Keep::What::gradients, .divided = axes});
  if (options.zero.after_forward > 1)
    plan.residency.keep({.what = Keep::What::parameters, .divided = {"data"}});
  Keep parameters{.what = Keep::What::parameters,
                  .between = options.zero.gap(),
                  .divided = axes,
                  .ahead = options.zero.prefetch,
                  .at_least = options.zero.whole_below};
  if (options.zero.stage < 3) {
    if (!parameters.ahead) return;
    parameters.between = Keep::Between::iterations;
  }
  if (!parameters.ahead) parameters.ahead = default_prefetch;
  plan.residency.keep(parameters);
}

/// `group` of `all` ranks.
void check_groups(const Options& options, int group, int all, const JsonReader& ranks) {
  if (options.zero.stage == 0) ranks.fail("a stage above 0 beside it");
  if (group > all) ranks.fail("at most " + std::to_string(all));
  if (options.expert > 1) ranks.fail("experts on one rank beside it");
  if (all % group != 0) {
    ranks.fail("a divisor of " + std::string(all == options.data ? "data" : "ranks") + ", " +
               std::to_string(all));
  }
}

void check_zero(Options& options, const JsonReader& strategy) {
  const auto zero = strategy.find("zero");
  if (!zero || !zero->is_object()) return;
  const int& group = options.zero.ranks;
  if (const auto ranks = zero->find("ranks")) check_groups(options, group, options.data, *ranks);
  const auto wants = [&](const char* key, int stage, const char* expected) {
    if (options.zero.stage < stage && zero->has(key)) zero->at(key).fail(expected);
  };
  wants("prefetch", 1, "a stage above 0 beside it, which gathers parameters");
  wants("whole_below", 3, "stage 3 beside it, which divides parameters");
  wants("reshard_after_forward", 3, "stage 3 beside it, which divides parameters");
  const int fewer = options.zero.after_forward, all = group > 0 ? group : options.data;
  if (fewer < 2) return;
  const JsonReader after = zero->at("reshard_after_forward");
  if (fewer == all) after.fail("true for all ranks");
  check_groups(options, fewer, all, after);
}

/// As FSDP has it: true, false, or a number of ranks.
Format<int> after_forward() {
  const Format<bool> yes = flag();
  const Format<std::int64_t> ranks = whole(2);
  return {{Json::object().set("anyOf", Json::array().push(yes.schema).push(ranks.schema)),
           "true, false or " + ranks.words},
          [=](const JsonReader& value) {
            if (value.is_number()) return static_cast<int>(ranks.read(value));
            return yes.read(value) ? 0 : 1;
          }};
}

}  // namespace

bool repeats_weights(const Options& options) {
  return options.data > 1 || options.context > 1 || size_of(options, "sp") > 1;
}

bool divides_or_offloads(const Options& options) {
  return repeats_weights(options) || options.offload.optimizer != HostPlace::none;
}

Strategy zero() {
  const auto stage = whole(0, 3);
  const OptionList<Zero> more = {
      {"stage", &Zero::stage, stage, "as the number alone", must_be_there},
      {"ranks", &Zero::ranks, whole(1),
       "consecutive data ranks that keep one copy together (hybrid sharding); divides `data`",
       "all"},
      {"prefetch", &Zero::prefetch, whole(0, 1'000),
       "segments whose parameters are gathered ahead of the one that runs: in stage 3 for each "
       "pass, in stages 1 and 2 for the first pass of the next iteration (Megatron-LM's "
       "--overlap-param-gather)",
       "1; in stages 1 and 2 all are gathered after the steps"},
      {"whole_below", &Zero::whole_below, whole(0, 1'000'000'000),
       "parameters of fewer elements on a device are not divided (stage 3)"},
      {"reshard_after_forward", &Zero::after_forward, after_forward(),
       "in stage 3, whether parameters are divided from a forward pass to the backward pass: false "
       "keeps them whole (FSDP's SHARD_GRAD_OP); a number divides them over so many consecutive "
       "data ranks, from which the backward pass gathers (ZeRO++'s hpZ, "
       "zero_hpz_partition_size)",
       "true"}};
  const auto alone =
      converted<Zero>(stage, [](std::int64_t n) { return Zero{.stage = static_cast<int>(n)}; });
  using Stage = Option<Options>;
  return {{Stage{"zero", &Options::zero, either(alone, {object_of(more)}),
                 "ZeRO: ranks that divide batch or tokens keep shards of optimizer states (1), "
                 "gradients (2), parameters (3)",
                 "0"}
               .worth({0, 1, 2, 3}, &divides_or_offloads)},
          &divide_weights,
          &check_zero};
}

}  // namespace stratagem::strategies
