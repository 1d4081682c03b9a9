// Sizes and names of tensors and their data types.
#include "model/tensor.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "base/input_error.hpp"

namespace stratagem::model {

namespace {

struct Row {
  DataType type;
  const char* name;
  Bytes size;
  std::int64_t block = 0;
};

/// Scales: one in fp32 for 128 elements (DeepSeek-V3, arXiv:2412.19437, section 3.3.2), one of 8
/// bits for 32 (OCP Microscaling Formats 1.0, section 5.2), one of 8 bits for 16 (Pretraining Large
/// Language Models with NVFP4, arXiv:2509.25149, section 2).
constexpr std::array table = {Row{DataType::fp64, "fp64", 8_B},
                              Row{DataType::fp32, "fp32", 4_B},
                              Row{DataType::tf32, "tf32", 4_B},
                              Row{DataType::fp16, "fp16", 2_B},
                              Row{DataType::bf16, "bf16", 2_B},
                              Row{DataType::fp8, "fp8", 1_B},
                              Row{DataType::fp8_blocks, "fp8-blocks", 1_B + 4_B / 128, 128},
                              Row{DataType::mxfp8, "mxfp8", 1_B + 1_B / 32, 32},
                              Row{DataType::nvfp4, "nvfp4", 0.5_B + 1_B / 16, 16},
                              Row{DataType::int8, "int8", 1_B},
                              Row{DataType::int64, "int64", 8_B}};

const Row& row_of(DataType type) {
  const auto* found = std::ranges::find(table, type, &Row::type);
  expects(found != table.end(), "a data type is one of the table");
  return *found;
}

}  // namespace

const std::vector<DataType>& data_types() {
  static const std::vector<DataType> types = [] {
    std::vector<DataType> all;
    for (const Row& row : table) all.push_back(row.type);
    return all;
  }();
  return types;
}

Bytes size_of(DataType type) { return row_of(type).size; }

/// Squares of 128 x 128 numbers share a scale (DeepSeek-V3, section 3.3.2). NVFP4's scales of
/// squares are stored for each row of them (Transformer Engine d0067d0d,
/// pytorch/csrc/quantizer.cpp).
Bytes size_in_weights(DataType type) {
  return type == DataType::fp8_blocks ? 1_B + 4_B / (128 * 128) : size_of(type);
}

std::string to_text(DataType type) { return row_of(type).name; }

bool is_scaled(DataType type) { return type == DataType::fp8 || row_of(type).block > 0; }

std::int64_t block_of(DataType type) { return row_of(type).block; }

std::int64_t element_count(const Tensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

Bytes bytes(const Tensor& tensor) {
  return static_cast<double>(element_count(tensor)) * size_of(tensor.type);
}

Origin origin_of(const Tensor& tensor, TensorId id) {
  if (tensor.origin) return *tensor.origin;
  return {
      .tensor = id, .shape = tensor.shape, .begin = std::vector<std::int64_t>(tensor.shape.size())};
}

}  // namespace stratagem::model
