// Counts and prints programs.
#include "program/program.hpp"

#include <fmt/format.h>

#include <iterator>

namespace stratagem::program {
namespace {

std::string text_of(const Task& task) {
  std::string text =
      fmt::format("{:<44} {:<24}", task.name, stream_names[static_cast<std::size_t>(task.stream)]);
  const auto out = std::back_inserter(text);
  if (const auto* kernel = std::get_if<cost::Kernel>(&task.work)) {
    fmt::format_to(out, " {} x{}", cost::kernel_kind_names[static_cast<std::size_t>(kernel->kind)],
                   kernel->launches);
    if (kernel->k > 0)
      fmt::format_to(out, " {}x{}x{}x{}", kernel->batch, kernel->m, kernel->n, kernel->k);
    fmt::format_to(out, " {:.0f} B", kernel->traffic.value);
  } else {
    const auto& collective = std::get<Collective>(task.work);
    fmt::format_to(out, " {}{} group {} {:.0f} B", cost::to_text(collective.kind),
                   collective.combine == model::Combine::maximum ? " (maximum)" : "",
                   collective.group, collective.payload.value);
  }
  const auto list = [&](const char* name, const std::vector<int>& values) {
    if (values.empty()) return;
    fmt::format_to(out, " {}", name);
    for (const int value : values) fmt::format_to(out, " {}", value);
  };
  list("waits", task.waits);
  list("reads", task.reads);
  list("writes", task.writes);
  list("births", task.births);
  list("deaths", task.deaths);
  return text;
}

}  // namespace

std::size_t task_count(const Program& program, const Sequence& sequence) {
  std::size_t count = 0;
  for (const Call& call : sequence.calls) count += program.blocks[call.block].tasks.size();
  return count;
}

Flops hardware_flops(const Program& program) {
  std::vector<Flops> blocks(program.blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (const Task& task : program.blocks[b].tasks) {
      const auto* kernel = std::get_if<cost::Kernel>(&task.work);
      if (kernel != nullptr) blocks[b] += kernel->flops;
    }
  }
  std::vector<Flops> sequences(program.sequences.size());
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (const Call& call : program.sequences[s].calls) sequences[s] += blocks[call.block];
  }
  Flops total;
  for (const Device& device : program.devices) total += sequences[device.sequence];
  return total;
}

bool crosses_links(const Program& program, const Device& device, const Collective& collective) {
  if (cost::concerns_host(collective.kind)) return true;
  const bool known = collective.group < static_cast<int>(device.groups.size());
  const int group = known ? device.groups[collective.group] : -1;
  return group >= 0 && program.communicators[group].ranks.size() > 1;
}

std::string to_text(const Program& program) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    fmt::format_to(out, "block {} {}\n", b, program.blocks[b].name);
    for (std::size_t t = 0; t < program.blocks[b].tasks.size(); ++t) {
      fmt::format_to(out, "  {:>3} {}\n", t, text_of(program.blocks[b].tasks[t]));
    }
  }
  for (std::size_t s = 0; s < program.sequences.size(); ++s) {
    fmt::format_to(out, "sequence {}\n", s);
    for (const Call& call : program.sequences[s].calls) {
      fmt::format_to(out, "  block {} segment {} {}", call.block, call.segment, to_text(call.cell));
      if (call.lag > 0) fmt::format_to(out, " lag {}", call.lag);
      if (call.versions_behind > 0)
        fmt::format_to(out, " versions behind {}", call.versions_behind);
      for (const Wait& wait : call.waits) {
        fmt::format_to(out, " [{} waits for {}.{}]", wait.task, wait.of_call, wait.of_task);
      }
      text += "\n";
    }
  }
  for (std::size_t d = 0; d < program.devices.size(); ++d) {
    fmt::format_to(out, "device {} sequence {} groups", d, program.devices[d].sequence);
    for (const int group : program.devices[d].groups) fmt::format_to(out, " {}", group);
    text += "\n";
  }
  return text;
}

}  // namespace stratagem::program
