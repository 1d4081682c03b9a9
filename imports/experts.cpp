// Has tensor ranks divide the dimension of experts in the operators that compute them.
#include "imports/experts.hpp"

#include <array>

namespace stratagem::imports {

void share_out_experts(bool gated, int ranks, int tensor, Settings& settings) {
  constexpr std::array with_gate = {"gate_up", "swiglu", "down", "combine"},
                       plain = {"fc1", "*elu", "fc2", "combine"};
  Json divided = Json::object();
  for (const char* part : gated ? with_gate : plain)
    divided.set(std::string("layers.*.mlp.") + part, "expert");
  settings.strategy.set("operators", divided);
  if (ranks % tensor == 0) settings.strategy.set("expert", ranks / tensor);
}

}  // namespace stratagem::imports
