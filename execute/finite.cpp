// Records the first task whose result is not finite, and tells all ranks.
#include "execute/finite.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "execute/types.hpp"

namespace stratagem::execute {

template <typename T>
void FiniteCheck::look(Engine<T>& engine, const Application<T>& application,
                       const CurrentTask& current) {
  const auto finite = [&](const Shared<T>& value) { return engine.finite(*value); };
  if (!first_.empty() || std::ranges::all_of(application.outputs, finite)) return;
  first_ = current.text();
  arises_ = true;
  for (std::size_t i = 0; i < application.inputs.size(); ++i) {
    if (finite(application.inputs[i])) continue;
    const model::Tensor& tensor = application.graph.tensors[application.op.inputs[i]];
    if (tensor.role == model::Role::parameter) {
      first_ += ", reading parameter " + tensor.name;
    } else {
      arises_ = false;
    }
  }
}

std::string FiniteCheck::told(kernels::Communicator& world, double loss,
                              std::uint64_t iteration) const {
  constexpr std::size_t most = 512;
  struct Note {
    std::array<char, most> text{};
    bool arises = false;
  };
  Note mine{.text = {}, .arises = arises_};
  std::memcpy(mine.text.data(), first_.data(), std::min(first_.size(), most - 1));
  std::vector<Note> all(static_cast<std::size_t>(world.size()));
  world.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  auto found = std::ranges::find_if(all, [](const Note& note) { return note.arises; });
  if (found == all.end())
    found = std::ranges::find_if(all, [](const Note& note) { return note.text[0] != 0; });
  const std::string what =
      "the loss of iteration " + std::to_string(iteration) + " is " + std::to_string(loss);
  if (found == all.end()) return what;
  return what + "; values are not finite since rank " + std::to_string(found - all.begin()) + ", " +
         found->text.data();
}

#define INSTANTIATE(T) \
  template void FiniteCheck::look<T>(Engine<T>&, const Application<T>&, const CurrentTask&);
STRATAGEM_FOR_HELD_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace stratagem::execute
