// Keys of a model that several families of transformers have.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/options.hpp"
#include "model/zoo/fused_attention.hpp"

namespace stratagem::model {

/// Do heads of a family have a width that may be another than their share of the hidden size?
template <typename Config>
inline constexpr bool has_head_width = requires(Config c) {
  c.head_width;
}
|| requires(Config c) { c.variant.head_width; };

/// A family's options, after the sizes that all of them want.
template <typename Config>
OptionList<Config> with_sizes(const OptionList<Config>& more) {
  const auto size = whole(1, 10'000'000);
  OptionList<Config> all = {
      {"layers", &Config::layers, whole(1, 10'000), "layers", must_be_there},
      {"hidden", &Config::hidden, size, "hidden size", must_be_there},
      {"heads", &Config::heads, size,
       "heads of every attention; divides `hidden`" +
           std::string(has_head_width<Config> ? " where there is no `head_width`" : ""),
       must_be_there},
      {"sequence", &Config::sequence, size, "tokens of a sample", must_be_there},
      {"vocabulary", &Config::vocabulary, size, "entries of the table, as padded for the run",
       must_be_there}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Refuses heads that do not divide the hidden size, where they have their share of it.
template <typename Config>
void check_heads(const JsonReader& config, const Config& c) {
  if (config.has("head_width") || c.hidden % c.heads == 0) return;
  config.at("heads").fail("a divisor of hidden, " + std::to_string(c.hidden) +
                          (has_head_width<Config> ? ", or head_width" : ""));
}

template <typename Config>
Option<Config> head_width_option(auto member) {
  return {"head_width", member, whole(1, 10'000'000), "width of a head", "`hidden` / `heads`"};
}

/// Documents of a sample: how many, or the length of each.
inline Format<Documents> packed_documents() {
  const Format<std::int64_t> count = whole(2, 1'000'000);
  const auto lengths = list_of<std::int64_t>(whole(1, 10'000'000), 1);
  return {{Json::object().set("anyOf", Json::array().push(count.schema).push(lengths.schema)),
           count.words + ", or " + lengths.words,
           {}},
          [=](const JsonReader& reader) -> Documents {
            if (reader.is_array()) return {.lengths = lengths.read(reader)};
            return {.count = count.read(reader)};
          }};
}

/// A family's options, with those of what a token sees.
template <typename Config>
OptionList<Config> with_sight(OptionList<Config> options) {
  const auto of_sight = [](auto Sight::*member) {
    return [member](Config & c) -> auto& { return c.variant.sight.*member; };
  };
  options.push_back({"window", of_sight(&Sight::window), whole(1, 10'000'000),
                     "how many of the last tokens a token sees, itself among them (with fused "
                     "attention)",
                     "all"});
  options.push_back({"full_every", of_sight(&Sight::full_every), whole(2, 10'000),
                     "with `window`: every n-th layer sees all tokens", "none"});
  options.push_back({"sinks", of_sight(&Sight::sinks), flag(),
                     "a trained score of every head beside those of the tokens (with fused "
                     "attention)"});
  options.push_back(
      {"documents", of_sight(&Sight::documents), packed_documents(),
       "documents packed into each sample: how many, all as long, or their lengths in "
       "tokens; a token sees those of its own (with fused attention)",
       "one"});
  return options;
}

/// Refuses documents that are no whole sample together.
inline void check_documents(const JsonReader& key, const Documents& documents,
                            std::int64_t tokens) {
  const std::string all = "the sequence's " + std::to_string(tokens) + " tokens";
  if (documents.count > 0 && tokens % documents.count != 0)
    key.fail("a number of documents that divides " + all);
  const std::vector<std::int64_t> lengths = documents.in(tokens);
  const auto sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (sum != tokens) key.fail("documents of " + all + " together", std::to_string(sum));
}

/// Refuses what only a fused attention has, and layers without a window where none has one.
template <typename Config>
void check_sight(const JsonReader& config, const Config& c, bool fused) {
  for (const char* key : {"window", "sinks", "documents"}) {
    if (config.has(key) && !fused) config.at(key).fail("\"attention\": \"fused\" beside it");
  }
  const Sight& sight = c.variant.sight;
  if (sight.window >= c.sequence)
    config.at("window").fail("fewer tokens than the sequence's " + std::to_string(c.sequence));
  if (const auto documents = config.find("documents")) {
    check_documents(*documents, sight.documents, c.sequence);
    if (config.has("prefix")) documents->fail("no \"prefix\" beside it");
  }
  if (!config.has("full_every")) return;
  if (sight.window == 0) config.at("full_every").fail("window beside it");
  if (sight.full_every > c.layers)
    config.at("full_every").fail("at most " + std::to_string(c.layers));
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
