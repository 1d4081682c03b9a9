// Bytes of tensors.
#include "model/tensor.hpp"

#include "tests/catch.hpp"

namespace stratagem::model::tensor_test {

TEST_CASE("elements of every data type have the bytes of their formats") {
  // IEEE 754: 64, 32 and 16 bits; bfloat16 is the upper half of a 32-bit number.
  const std::vector<std::pair<DataType, Bytes>> sizes{
      {DataType::fp64, 8_B}, {DataType::fp32, 4_B}, {DataType::fp16, 2_B},
      {DataType::bf16, 2_B}, {DataType::int8, 1_B}, {DataType::int64, 8_B}};
  for (const auto& [type, size] : sizes) {
    INFO(to_text(type));
    CHECK(size_of(type) == size);
    CHECK(bytes({.name = "x", .shape = {3, 5}, .type = type}) == 15 * size);
  }
}

TEST_CASE("numbers of few bits come with the scale of their block") {
  // One fp32 for 128 numbers of 8 bits; one of 8 bits for 32 (OCP MX 1.0); of 8 bits for 16 numbers
  // of 4 bits (NVFP4). A whole tensor's scale takes nothing.
  const auto of_blocks = [](DataType type, std::int64_t blocks) {
    return bytes({.name = "x", .shape = {blocks, block_of(type)}, .type = type});
  };
  CHECK(of_blocks(DataType::fp8_blocks, 3) == 3 * (128_B + 4_B));
  CHECK(of_blocks(DataType::mxfp8, 3) == 3 * (32_B + 1_B));
  CHECK(of_blocks(DataType::nvfp4, 3) == 3 * (8_B + 1_B));
  CHECK(size_of(DataType::fp8) == 1_B);
  // Of weights, squares of 128 x 128 have one.
  CHECK(128 * 128 * size_in_weights(DataType::fp8_blocks) == 128 * 128_B + 4_B);
  for (const DataType type : data_types())
    CHECK(is_scaled(type) == (type == DataType::fp8 || block_of(type) > 0));
}

TEST_CASE("a tensor without dimensions is one element") {
  CHECK(element_count({.name = "loss", .shape = {}}) == 1);
}

TEST_CASE("a tensor of more than 2^31 elements is counted exactly") {
  // The token table of a vocabulary of 2^20 and a hidden size of 2^14.
  CHECK(element_count({.name = "words", .shape = {1 << 20, 1 << 14}}) == std::int64_t{1} << 34);
}

}  // namespace stratagem::model::tensor_test
