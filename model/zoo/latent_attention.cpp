// Builds the narrow vectors, and heads of them.
#include "model/zoo/latent_attention.hpp"

#include <string>
#include <utility>
#include <vector>

#include "model/operator_kinds.hpp"
#include "model/zoo/norm.hpp"

namespace stratagem::model {
namespace {

class LatentHeads {
 public:
  LatentHeads(Builder& build, const TransformerConfig& config)
      : build_(build),
        c_(config),
        latent_(config.attention.latent),
        rows_(tokens(config.batch, config.sequence)) {}

  TensorId queries(TensorId x) {
    if (latent_.query_rank > 0)
      x = normed("attention.up.q_norm",
                 linear(build_, rows_, "attention.q_down", x, latent_.query_rank, c_.bias));
    const auto [plain, turned] =
        of_heads("attention.up.q", x, {"attention.q_plain", c_.head_width()},
                 {"attention.q_turned", latent_.rotary});
    return joined("q", plain, rotary("attention.up.rotary_q", turned, dims("r^")), dims("r^"));
  }

  std::pair<TensorId, TensorId> keys_and_values(TensorId x) {
    const TensorId both =
        linear(build_, rows_, "attention.kv_down", x, latent_.key_rank + latent_.rotary, c_.bias);
    const TensorId narrow = row("attention.kv_latent", latent_.key_rank);
    const TensorId shared = row("attention.k_shared", latent_.rotary);
    build_.add(OpKind::split_heads, "attention.split_latent", "b s a^ -> b s l^, b s r^", {both},
               {narrow, shared});
    const auto [plain, values] =
        of_heads("attention.up.kv", normed("attention.up.kv_norm", narrow),
                 {"attention.k_plain", c_.head_width()},
                 {"attention.v", latent_.values > 0 ? latent_.values : c_.head_width()});
    const std::string of_tokens = "b s r^";
    return {joined("k", plain, rotary("attention.up.rotary_k", shared, of_tokens), of_tokens),
            values};
  }

 private:
  using Part = std::pair<std::string, std::int64_t>;  ///< name and width

  /// Dimensions of heads that are so wide.
  [[nodiscard]] std::string dims(const std::string& width) const {
    return (c_.attention.fused ? "b s heads " : "b heads s ") + width;
  }
  TensorId of_all_heads(const std::string& name, std::int64_t width) {
    std::vector<std::int64_t> shape = {c_.batch, c_.sequence, c_.attention.heads, width};
    if (!c_.attention.fused) std::swap(shape[1], shape[2]);
    return build_.tensor(name, std::move(shape), c_.type, Role::activation);
  }
  TensorId row(const std::string& name, std::int64_t width) {
    return activation(build_, rows_, name, width, c_.type);
  }
  TensorId normed(const std::string& name, TensorId x) { return norm(build_, c_.norm, name, x); }

  /// A product whose columns are, head by head, first one part and then the other.
  std::pair<TensorId, TensorId> of_heads(const std::string& name, TensorId x, const Part& first,
                                         const Part& second) {
    const std::int64_t width = c_.attention.heads * (first.second + second.second);
    const TensorId product = linear(build_, rows_, name, x, width, c_.bias);
    const std::pair parts = {of_all_heads(first.first, first.second),
                             of_all_heads(second.first, second.second)};
    build_.add(OpKind::split_heads, name + "_heads",
               "b s (heads a^) -> " + dims("n^") + ", " + dims("w^"), {product},
               {parts.first, parts.second});
    return parts;
  }

  TensorId rotary(const std::string& name, TensorId x, const std::string& of) {
    const TensorId y = build_.tensor(name + ".out", build_[x].shape, c_.type, Role::activation);
    build_.add(OpKind::rotary, name, of + " -> " + of, {x}, {y});
    return y;
  }

  /// Side by side in every head; what all heads share is copied.
  TensorId joined(const std::string& name, TensorId plain, TensorId turned,
                  const std::string& of_turned) {
    const TensorId y =
        of_all_heads("attention." + name, build_[plain].shape.back() + latent_.rotary);
    build_.add(operator_named("join"), "attention.up.join_" + name,
               dims("n^") + ", " + of_turned + " -> " + dims("d^"), {plain, turned}, {y});
    return y;
  }

  Builder& build_;
  const TransformerConfig& c_;
  const Latent& latent_;
  Rows rows_;
};

}  // namespace

CoreInputs latent_heads(Builder& build, const TransformerConfig& config, TensorId x) {
  LatentHeads heads(build, config);
  const TensorId queries = heads.queries(x);
  const auto [keys, values] = heads.keys_and_values(x);
  return {queries, keys, values};
}

void check_latent(const JsonReader& config) {
  const auto latent = config.find("latent");
  if (!latent) return;
  for (const char* key : {"kv_heads", "qk_norm", "repeat_keys", "prefix"}) {
    if (config.has(key)) config.at(key).fail("nothing, beside \"latent\"");
  }
}

}  // namespace stratagem::model
