// Keys of a model that several families of transformers have.
#pragma once

#include <string>

#include "base/json_reader.hpp"
#include "base/options.hpp"

namespace stratagem::model {

/// A family's options, after the sizes that all of them want.
template <typename Config>
OptionList<Config> with_sizes(const OptionList<Config>& more) {
  const auto size = whole(1, 10'000'000);
  OptionList<Config> all = {
      {"layers", &Config::layers, whole(1, 10'000), "layers", must_be_there},
      {"hidden", &Config::hidden, size, "hidden size", must_be_there},
      {"heads", &Config::heads, size, "heads of every attention; divides `hidden`", must_be_there},
      {"sequence", &Config::sequence, size, "tokens of a sample", must_be_there},
      {"vocabulary", &Config::vocabulary, size, "entries of the table, as padded for the run",
       must_be_there}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Refuses heads that do not divide the hidden size.
template <typename Config>
void check_heads(const JsonReader& config, const Config& c) {
  if (c.hidden % c.heads != 0)
    config.at("heads").fail("a divisor of hidden, " + std::to_string(c.hidden));
}

template <typename Config>
Option<Config> kv_heads_option(auto member) {
  return {"kv_heads", member, whole(1, 10'000'000),
          "keys and values, each shared by `heads` / `kv_heads` queries; more tensor ranks are "
          "refused",
          "`heads`"};
}

template <typename Config>
Option<Config> qk_norm_option(auto member) {
  return {"qk_norm", member, flag(),
          "queries and keys are normalised over the width of a head, as in Qwen3"};
}

template <typename Config>
Option<Config> fused_loss_option(auto member) {
  return {"loss", member, choice<bool>({{"unfused", false}, {"fused", true}}),
          "exponentials of the logits are kept in fp32, or the loss leaves the gradient of the "
          "logits in their own type (Transformer Engine)"};
}

}  // namespace stratagem::model
