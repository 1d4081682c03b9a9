// ZeRO-Offload and ZeRO-Infinity: optimizer steps on the processors of the server, with their
// states in its memory or on its drives, and parameters beside them.
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

/// op-assign of all optimizer steps to the host. The lowering finds the copies of gradients to it,
/// behind their reduction, and of weights back from it: twice the bytes of the weights per rank (of
/// its shards, with ZeRO) for one micro-batch. What the host does to add up the gradients of
/// several micro-batches is not modelled. Source: Ren et al., ZeRO-Offload, USENIX ATC 2021,
/// arXiv:2101.06840, sections 4 and 5.2 (delayed updates). Or of the parameters, too, which are
/// fetched segment by segment: ZeRO-Infinity, arXiv:2104.07857. Each may live on the drives, behind
/// that memory, as may gradients, to which every micro-batch adds.
void place_on_host(Plan& plan, const Options& options) {
  const OffloadOptions& offload = options.offload;
  if (offload.optimizer == HostPlace::none) return;
  const std::string said = path_of(&Options::offload);
  plan.steps.on_host = true;
  plan.steps.delayed = offload.delayed_update;
  plan.steps.said = said;
  constexpr auto on_drives = Keep::Where::drives;
  if (offload.optimizer == HostPlace::drives)
    plan.residency.keep(
        {.what = Keep::What::states, .where = on_drives, .said = said + "/optimizer"});
  if (offload.gradients == HostPlace::drives)
    plan.residency.keep(
        {.what = Keep::What::gradients, .where = on_drives, .said = said + "/gradients"});
  if (offload.parameters == HostPlace::none) return;
  const bool drives = offload.parameters == HostPlace::drives;
  plan.residency.keep({.what = Keep::What::parameters,
                       .between = options.zero.gap(),
                       .where = drives ? on_drives : Keep::Where::host,
                       .ahead = options.zero.prefetch.value_or(default_prefetch),
                       .said = said + (drives ? "/parameters" : "")});
}

/// The value that says what waits on the host.
JsonReader said(const JsonReader& offload) {
  for (const char* key : {"of", "parameters", "optimizer"}) {
    if (offload.is_object() && offload.has(key)) return offload.at(key);
  }
  return offload;
}

void check_offload(Options& options, const JsonReader& strategy) {
  const bool steps = options.offload.optimizer != HostPlace::none;
  const bool parameters = options.offload.parameters != HostPlace::none;
  const auto refuse = [&](bool wrong, const char* expected) {
    if (wrong) said(strategy.at("offload")).fail(expected);
  };
  refuse(steps && repeats_weights(options) && options.zero.stage == 0,
         "zero beside it, so that ranks with the same weights share their steps");
  refuse(parameters && options.zero.stage != 3,
         "zero 3 beside parameters on the host, of which every rank fetches its share");
  refuse(parameters && options.zero.whole_below > 0,
         "all parameters divided, zero without whole_below, where they are on the host");
  if (options.offload.delayed_update && (parameters || !steps)) {
    strategy.at("offload")
        .at("delayed_update")
        .fail("the optimizer alone on the host, whose steps may run beside an iteration");
  }
}

constexpr const char* delayed =
    "steps of the optimizer, which is alone on the host, run beside the iteration that follows; "
    "that computes with weights that lack its last gradients";

/// "optimizer", or "parameters" beside it.
Format<OffloadOptions> by_word() {
  constexpr auto memory = HostPlace::memory;
  return choice<OffloadOptions>({{"none", {}},
                                 {"optimizer", {.optimizer = memory}},
                                 {"parameters", {.optimizer = memory, .parameters = memory}}});
}

/// {"of": "optimizer"}, which may say more.
Format<OffloadOptions> by_word_in_object() {
  struct Said {
    OffloadOptions of;
    std::string to = "host";
  };
  const OptionList<Said> options = {
      {"of", &Said::of, by_word(), "as the word alone", must_be_there},
      {"to", &Said::to, words({"host"}), "where to"},
      {"delayed_update", within(&Said::of, &OffloadOptions::delayed_update), flag(), delayed}};
  return converted<OffloadOptions>(object_of(options), [](const Said& all) { return all.of; });
}

/// {"optimizer": "drives", "parameters": "memory"}
Format<OffloadOptions> by_place() {
  using O = OffloadOptions;
  const auto place =
      choice<HostPlace>({{"memory", HostPlace::memory}, {"drives", HostPlace::drives}});
  return object_of<O>(
      {{"optimizer", &O::optimizer, place, "where optimizer states live", must_be_there},
       {"parameters", &O::parameters, place, "where weights live (wants `zero` 3)", "on the GPUs"},
       {"gradients", &O::gradients, place,
        "where gradients wait for their step; on drives, every micro-batch reads what is there, "
        "adds "
        "to it, and writes it"},
       {"delayed_update", &O::delayed_update, flag(), delayed}});
}

}  // namespace

Strategy offload() {
  return {
      {{"offload", &Options::offload, either(by_word(), {by_place(), by_word_in_object()}),
        "what lives in the memory of the server's processors: `optimizer`, its states, with its "
        "steps run there (ZeRO-Offload), or `parameters`, weights beside them (ZeRO-Infinity)",
        "none"}},
      &place_on_host,
      &check_offload};
}

}  // namespace stratagem::strategies
