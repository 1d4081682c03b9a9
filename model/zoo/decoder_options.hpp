// Keys of a model that several families of decoders have.
#pragma once

#include "base/options.hpp"

namespace stratagem::model {

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
