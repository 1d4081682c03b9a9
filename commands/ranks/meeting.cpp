// One exchange over MPI.
#include "commands/ranks/meeting.hpp"

#include <span>
#include <vector>

#include "commands/ranks/on_ranks.hpp"
#include "commands/ranks/rank_agreement.hpp"

namespace stratagem::commands {
namespace {

std::string from_first(kernels::Communicator& ranks, std::string text) {
  std::vector<double> size = {static_cast<double>(text.size())};
  ranks.broadcast(0, std::span(size));
  text.resize(static_cast<std::size_t>(size.front()));
  ranks.broadcast(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

std::optional<Met> meet(const std::function<std::string()>& own,
                        const std::function<std::string()>& word) {
  std::optional<Met> met;
  on_ranks(kernels::patience, bad_input, [&](kernels::World& world) -> int {
    kernels::Communicator& all = world.all();
    std::string text;
    all_or_none(all, [&] { text = own(); });
    expect_alike(all, "the program, and the files of defaults,", text);
    all_or_none(all, [&] { text = all.rank() == 0 ? word() : ""; });
    met = {.rank = all.rank(), .ranks = all.size(), .word = from_first(all, text)};
    return done;
  });
  return met;
}

}  // namespace stratagem::commands
