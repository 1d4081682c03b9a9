// Sets one constant after the other to a value that costs nothing, and tests whether the time can
// be counted then.
#include "sim/time_overflow.hpp"

#include <cmath>
#include <functional>
#include <vector>

#include "base/quantity_text.hpp"
#include "cost/speed_spread.hpp"
#include "sim/instant.hpp"

namespace stratagem::sim {
namespace {

constexpr BytesPerSecond fast{1e21};

/// What kernels and their launches take, which the profile and the stack say.
struct Constants {
  cost::Profile profile;
  cost::Stack stack;
  int gpus = 1;
};

/// A constant and what it would be where it costs nothing.
struct Suspect {
  std::string place;
  std::function<void(Constants&)> mend;
};

bool countable(const cost::Kernel& kernel, const Constants& constants) {
  const Seconds launch = constants.profile.launch.value * constants.stack.host_factor.value;
  const double slowest = cost::runs_at_its_clock(kernel.kind)
                             ? cost::slowest_of(constants.gpus, constants.profile)
                             : 1;
  const Seconds all = slowest * cost::kernel_time(kernel, constants.profile, constants.stack) +
                      static_cast<double>(kernel.launches) * launch;
  return std::abs(all.value) < longest_task.value;
}

/// Factors come before what they multiply: changing either would make the time countable.
std::vector<Suspect> suspects(const cost::Kernel& kernel) {
  const std::string type = model::to_text(kernel.type), gemm = "/gemm/" + type + "/";
  const std::string kind = cost::to_text(kernel.kind);
  const auto product = [&](const char* key, auto constant, double ideal) {
    return Suspect{gemm + key,
                   [=](Constants& c) { (c.profile.kernels.gemm[type].*constant).value = ideal; }};
  };
  using Gemm = cost::GemmConstants;
  return {
      {"slowdown", [](Constants& c) { c.stack.slowdown.value = 1; }},
      {"product_slowdown", [](Constants& c) { c.stack.product_slowdown.reset(); }},
      {"host_factor", [](Constants& c) { c.stack.host_factor.value = 1; }},
      {"/speed_spread", [](Constants& c) { c.profile.speed_spread.reset(); }},
      {"/launch", [](Constants& c) { c.profile.launch.value = {}; }},
      {"/kernel_floor", [](Constants& c) { c.profile.kernels.floor.value = {}; }},
      {gemm + "fixed", [=](Constants& c) { c.profile.kernels.gemm[type].fixed.value = {}; }},
      product("efficiency", &Gemm::efficiency, 1),
      product("half_intensity", &Gemm::half_intensity, 0),
      product("ramp", &Gemm::ramp, 0),
      product("streaming", &Gemm::streaming, 1),
      {"/streaming/" + kind, [=](Constants& c) { c.profile.kernels.streaming[kind].value = 1; }},
      {"/streaming_by_pass/" + kind, [=](Constants& c) { c.profile.kernels.by_pass.erase(kind); }},
      {"/attention",
       [](Constants& c) {
         for (auto& [name, sizes] : c.profile.kernels.attention)
           for (auto& [size, passes] : sizes)
             for (cost::AttentionPass* pass : {&passes.forward, &passes.backward})
               *pass = {.efficiency = {.value = 1}, .ramp = {}, .tile = {}};
       }},
      {gemm + "unaligned", [=](Constants& c) { c.profile.kernels.gemm[type].unaligned.clear(); }},
      {"/peak/" + type, [=](Constants& c) { c.profile.peak[type].value = FlopsPerSecond{1e24}; }},
      {"/memory_bandwidth", [](Constants& c) { c.profile.memory.bandwidth.value = fast; }},
      {"/host_copy/latency", [](Constants& c) { c.profile.host_copy.latency.value = {}; }},
      {"/host_copy/bandwidth", [](Constants& c) { c.profile.host_copy.bandwidth.value = fast; }},
      {"/host_memory_bandwidth",
       [](Constants& c) {
         if (c.profile.host_memory_bandwidth) c.profile.host_memory_bandwidth->value = fast;
       }},
  };
}

}  // namespace

InputError uncountable(const std::string& task, const cost::Kernel& kernel,
                       const cost::Profile& profile, const cost::Stack& stack, int gpus) {
  std::string found = "several that together are too slow";
  for (const Suspect& suspect : suspects(kernel)) {
    Constants mended{profile, stack, gpus};
    suspect.mend(mended);
    if (!countable(kernel, mended)) continue;
    const bool of_stack = suspect.place.front() != '/';
    found = suspect.place + " of " + (of_stack ? "stack " + stack.name : "profile " + profile.name);
    break;
  }
  return {"", "/profile",
          "constants with which " + task + " takes less than " + to_text(longest_task), found};
}

}  // namespace stratagem::sim
