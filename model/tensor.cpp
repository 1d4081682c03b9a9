// Sizes and names of tensors and their data types.
#include "model/tensor.hpp"

#include <functional>
#include <numeric>

#include "base/input_error.hpp"

namespace stratagem::model {

Bytes size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::fp8:
      return 1_B;
    case DataType::fp16:
    case DataType::bf16:
      return 2_B;
    case DataType::fp32:
    case DataType::tf32:
      return 4_B;
    case DataType::int64:
    case DataType::fp64:
      return 8_B;
  }
  throw BrokenPromise("a data type is one of its enumerators");
}

std::string to_text(DataType type) {
  switch (type) {
    case DataType::fp32:
      return "fp32";
    case DataType::fp16:
      return "fp16";
    case DataType::bf16:
      return "bf16";
    case DataType::int8:
      return "int8";
    case DataType::int64:
      return "int64";
    case DataType::fp64:
      return "fp64";
    case DataType::fp8:
      return "fp8";
    case DataType::tf32:
      return "tf32";
  }
  throw BrokenPromise("a data type is one of its enumerators");
}

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
