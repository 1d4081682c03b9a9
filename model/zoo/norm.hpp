// Layer norms and RMS norms, as models add them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/builder.hpp"

namespace stratagem::model {

/// What a norm works on, in the names of an annotation: each row of `rows` is normalised along
/// `width`. By default these are tokens. Queries that share a key lie in one dimension:
/// "b s g (q^ d^)", rows "b s g q^".
struct NormedRows {
  std::string dims = "b s h^";
  std::string width = "h^";
  std::string rows = "b s";
  std::vector<std::int64_t> shape =
      {};                 ///< of the rows; empty: the tensor's but its last dimension
  std::int64_t size = 0;  ///< of the width; 0: the tensor's last dimension
};

/// `kind` is layer_norm or rms_norm. Layer norms have a scale and a shift, and keep mean and
/// reciprocal deviation of every row in fp32; RMS norms have a scale, and keep the reciprocal root
/// mean square.
TensorId norm(Builder& build, OpKind kind, const std::string& name, TensorId x, NormedRows of = {});

}  // namespace stratagem::model
