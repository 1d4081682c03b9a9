// Training in types of two bytes, of which all but the kernels is what runs on a GPU, and a GPU
// where there is one, held to the one device in fp32.
#include <iostream>
#include <string>

#include "execute/gpu/gpu_engine.hpp"
#include "execute/loss_scale.hpp"
#include "tests/catch.hpp"
#include "tests/execute/held_to_fp32.hpp"
#include "tests/execute/rounded_engine.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::execute::mixed_test {
namespace {

using kernels::BFloat16;
using kernels::Half;

/// Calls `run.operator()<T>()` for both.
template <typename Run>
void for_types_of_two_bytes(const Run& run) {
  run.template operator()<Half>();
  run.template operator()<BFloat16>();
}

TEST_CASE("plans in fp16 and bf16 agree with one device in fp32, as far as rounding goes") {
  std::size_t number = 0;
  for (const model::Graph* graph : {&small_gpt(), &small_llama()}) {
    for (const std::string& strategy : small_strategies) {
      for_types_of_two_bytes([&]<typename T>() {
        if (number++ % stride(3) != 0) return;
        const Agreement agreement =
            held_to_fp32<T>(*graph, strategy, [] { return std::make_unique<RoundedEngine<T>>(); });
        CAPTURE(strategy, agreement.worst, agreement.gradients, agreement.losses);
        CHECK(agrees<T>(agreement));
        CHECK(agreement.gradients > 1e-5);  // it has been rounded
      });
    }
  }
}

TEST_CASE("the scale of a loss is a power of two with which a row's gradient is at most 1") {
  CHECK(loss_scale<Half>(1.0 / 128) == 128);
  CHECK(loss_scale<Half>(1.0 / 127) == 64);
  CHECK(loss_scale<float>(1.0 / 128) == 1);
  CHECK(loss_scale<BFloat16>(1.0 / 128) == 1);
}

TEST_CASE(
    "where two bytes are held, live bytes are fewer, but not those of statistics and states") {
  const Planned plan = planned(small_gpt(), "{}", 2);
  const BufferPacking of_two = pack_buffers(plan.program, plan.plan.graph(), 0, sizes_of<Half>());
  const BufferPacking of_four = pack_buffers(plan.program, plan.plan.graph(), 0, sizes_of<float>());
  REQUIRE(of_two.buffers.size() == of_four.buffers.size());
  CHECK(of_two.buffers[of_two.states].capacity == of_four.buffers[of_four.states].capacity);
  for (std::size_t i = 0; i < of_two.buffers.size(); ++i) {
    const std::size_t two = of_two.buffers[i].capacity, four = of_four.buffers[i].capacity;
    CHECK((two == four || 2 * two == four));
  }
}

TEST_CASE("a GPU agrees with one device of the host: fp32, fp16 and, if it has it, bf16") {
  const std::vector<kernels::Device> devices = kernels::devices();
  if (devices.empty()) {
    std::cout << "no CUDA device (" << kernels::why_no_devices() << "): skipped\n";
    return;
  }
  const auto check = [&]<typename T>(const model::Graph& graph, const std::string& strategy) {
    const Agreement agreement = held_to_fp32<T>(graph, strategy, [] { return gpu_engine<T>(0); });
    CAPTURE(strategy, sizeof(T), agreement.worst, agreement.gradients, agreement.losses);
    CHECK(agrees<T>(agreement));
  };
  for (const model::Graph* graph : {&small_gpt(), &small_llama()}) {
    for (const std::string& strategy : small_strategies) {
      check.template operator()<float>(*graph, strategy);
      check.template operator()<Half>(*graph, strategy);
      if (devices[0].at_least(8)) check.template operator()<BFloat16>(*graph, strategy);
    }
  }
  for (const model::Graph& graph : small_fused()) {
    for (const std::string& strategy : fused_strategies) {
      check.template operator()<float>(graph, strategy);
      check.template operator()<Half>(graph, strategy);
      if (devices[0].at_least(8)) check.template operator()<BFloat16>(graph, strategy);
    }
  }
}

}  // namespace
}  // namespace stratagem::execute::mixed_test
