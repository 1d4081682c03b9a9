// Adds the operator, what it reads besides heads, and its two results.
#include "model/zoo/fused_attention.hpp"

namespace stratagem::model {
namespace {

/// What a core leaves: its result, and the logarithms of the sums of every row.
std::vector<TensorId> results_of(Builder& build, const std::string& name, const CoreInputs& of,
                                 std::int64_t heads) {
  const std::vector<std::int64_t> q = build[of.queries].shape;  // b s g e
  const std::int64_t groups = q[2];
  const std::int64_t key = build[of.keys].shape[3], value = build[of.values].shape[3];
  return {build.tensor(name + ".out", {q[0], q[1], groups * q[3] / key * value},
                       build[of.queries].type, Role::activation),
          build.tensor(name + ".log_sums", {q[0], q[1], groups, heads / groups}, DataType::fp32,
                       Role::statistic)};
}

}  // namespace

TensorId cached_attention(Builder& build, const std::string& name, const CoreInputs& of,
                          std::int64_t heads, const Cache& cache) {
  const auto room_for = [&](const std::string& what, TensorId x) {
    std::vector<std::int64_t> shape = build[x].shape;  // b n g d
    shape[1] = cache.room;
    return build.tensor(name + "." + what, shape, build[x].type, Role::cache);
  };
  const TensorId keys = room_for("keys", of.keys), values = room_for("values", of.values);
  const std::vector<TensorId> results = results_of(build, name, of, heads);
  const OpId core = build.add(
      OpKind::cached_attention, name,
      "b s g e^, b t^ g d^, b t^ g w^, b n^ g d^, b n^ g w^ -> b s (g o^), b s g queries^",
      {of.queries, keys, values, of.keys, of.values}, results);
  build.set_cached(core, cache.tokens);
  return results[0];
}

std::vector<std::int64_t> Documents::in(std::int64_t tokens) const {
  if (count == 0) return lengths;
  return std::vector<std::int64_t>(static_cast<std::size_t>(count), tokens / count);
}

TensorId fused_attention(Builder& build, const std::string& name, const CoreInputs& of,
                         std::int64_t heads, const Sight& sight) {
  const std::int64_t groups = build[of.queries].shape[2];
  std::vector<TensorId> operands = {of.queries, of.keys, of.values};
  std::string annotation = "b s g e^, b t^ g d^, b t^ g w^";
  if (sight.sinks) {
    operands.push_back(
        build.parameter(name + ".sinks", {groups, heads / groups}, build[of.queries].type));
    annotation += ", g queries^";
  }
  const std::vector<TensorId> results = results_of(build, name, of, heads);
  const OpId core =
      build.add(sight.causal ? OpKind::fused_attention : OpKind::fused_attention_to_all, name,
                annotation + " -> b s (g o^), b s g queries^", operands, results);
  if (sight.window > 0) build.set_window(core, sight.window);
  if (sight.documents.any())
    build.set_documents(core, sight.documents.in(build[of.queries].shape[1]));
  return results[0];
}

}  // namespace stratagem::model
