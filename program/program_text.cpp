// Blocks in the order in which ranks call them, then sequences, their calls named for segment and
// cell.
#include "program/program_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>

#include "program/text/block_text.hpp"
#include "program/text/group_names.hpp"
#include "program/text/names.hpp"

namespace stratagem::program {
namespace {

class ProgramWriter {
 public:
  ProgramWriter(const Program& program, const model::Graph& graph)
      : program_(program),
        names_(graph),
        groups_(program),
        devices_(devices_by_sequence(program)),
        blocks_(program.blocks.size()),
        titles_(program.blocks.size()) {
    for (const placement::Grid& grid : program.grids) grids_.push_back(text_of_grid(grid));
    for (std::size_t s = 0; s < devices_.size(); ++s) {
      if (!devices_[s].empty()) order_.push_back(static_cast<int>(s));
    }
    std::ranges::sort(order_, {}, [&](int s) { return devices_[s].front(); });
  }

  std::string write() {
    text_ = fmt::format("lag {}\n", program_.lag);
    write_blocks();
    for (const int sequence : order_) write_sequence(sequence);
    return std::move(text_);
  }

 private:
  /// Blocks of equal text are one.
  void write_blocks() {
    std::vector<bool> seen(program_.blocks.size(), false);
    std::unordered_map<std::string, std::size_t> known;  // by text
    std::vector<std::string> texts, titles;
    std::vector<std::pair<int, std::size_t>> which;  // of blocks
    for (const int sequence : order_) {
      for (const Call& call : program_.sequences[sequence].calls) {
        if (seen[call.block]) continue;
        seen[call.block] = true;
        BlockText& block = blocks_[call.block] = block_text(program_, call, names_);
        std::string text = std::move(block.text);
        const auto [found, fresh] = known.emplace(block.name + "\n" + text, texts.size());
        which.emplace_back(call.block, found->second);
        if (!fresh) continue;
        titles.push_back(called(block, call.segment));
        texts.push_back(std::move(text));
      }
    }
    number_equals(titles);
    for (const auto& [block, number] : which) titles_[block] = titles[number];
    for (std::size_t i = 0; i < texts.size(); ++i)
      text_ += fmt::format("block {}\n{}", titles[i], texts[i]);
  }

  /// "F layers.3", "receive out for layers.3".
  [[nodiscard]] std::string called(const BlockText& block, int segment) const {
    if (segment < 0) return block.name;
    std::string name = block.name;
    const std::size_t place = name.find('*');
    if (place == std::string::npos) return name + " for " + names_.segment(segment);
    return name.replace(place, 1, names_.segment(segment));
  }

  void write_sequence(int s) {
    const Sequence& sequence = program_.sequences[s];
    text_ += fmt::format("sequence of ranks {}\n", text_of_ranks(devices_[s]));
    for (const std::string& line : groups_.lines(s)) text_ += "  group " + line + "\n";
    const std::vector<std::string> calls = write_runs(s);
    write_residents(sequence, calls);
    for (std::size_t c = 0; c < calls.size(); ++c) {
      write_call(sequence.calls[c], calls[c]);
      write_waits(sequence, c, calls);
    }
    write_launches(sequence, calls);
  }

  /// The launches of calls that alternate with others.
  void write_launches(const Sequence& sequence, const std::vector<std::string>& calls) {
    const std::vector<int> first = first_beside(sequence);
    for (const Launch& launch : sequence.launches) {
      const auto call = static_cast<std::size_t>(launch.call);
      const bool alone = first[call] == launch.call &&
                         (call + 1 == first.size() || first[call + 1] != launch.call);
      if (alone) continue;
      const std::vector<std::string>& tasks = blocks_[sequence.calls.body(call).block].tasks;
      fmt::format_to(std::back_inserter(text_), "  launch {} to {} of {}\n", tasks[launch.first],
                     tasks[launch.end - 1], calls[call]);
    }
  }

  /// Writes what the calls of a sequence run: blocks for segments on grids. Returns the calls'
  /// names.
  std::vector<std::string> write_runs(int s) {
    std::map<std::tuple<int, int, int>, std::string> runs;  // names
    std::unordered_map<std::string, std::string> known;     // names by what is run
    std::unordered_map<std::string, int> count;
    std::vector<std::string> calls;
    for (const Call& call : program_.sequences[s].calls) {
      const auto [run, fresh] = runs.try_emplace({call.block, call.segment, call.grid});
      if (fresh) {
        std::string name = called(blocks_[call.block], call.segment);
        const std::string what = what_runs(s, call);
        const auto [same, is_new] = known.try_emplace(fmt::format("{}: {}", name, what));
        if (is_new) {
          const int number = ++count[name];
          if (number > 1) name += fmt::format(" ({})", number);
          text_ += fmt::format("  run {}: {}\n", name, what);
          same->second = std::move(name);
        }
        run->second = same->second;
      }
      calls.push_back(run->second + " in " + to_text(call.cell));
    }
    number_equals(calls);
    return calls;
  }

  /// A block, which communicators its groups are, where it runs, and on which tensors.
  [[nodiscard]] std::string what_runs(int sequence, const Call& call) const {
    const BlockText& block = blocks_[call.block];
    std::string text = titles_[call.block];
    for (const int group : block.groups)
      text += (group == block.groups.front() ? ", in " : " ") + groups_.name(sequence, group);
    if (call.grid >= 0) text += ", grid " + grids_[call.grid];
    return text + text_of_binding(program_, block, call.segment, names_);
  }

  void write_call(const Call& call, const std::string& name) {
    const auto out = std::back_inserter(text_);
    fmt::format_to(out, "  {}", name);
    if (call.lag > 0) fmt::format_to(out, ", lag {}", call.lag);
    if (call.versions_behind > 0) fmt::format_to(out, ", versions behind {}", call.versions_behind);
    text_ += "\n";
  }

  void write_waits(const Sequence& sequence, std::size_t c, const std::vector<std::string>& calls) {
    std::vector<std::tuple<int, int, int>> waits;
    for (const Wait& wait : sequence.calls[c].waits)
      waits.emplace_back(wait.task, wait.of_call, wait.of_task);
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    for (const auto& [task, of_call, of_task] : waits) {
      fmt::format_to(std::back_inserter(text_), "    {} after {} of {}\n",
                     blocks_[sequence.calls.body(c).block].tasks[task],
                     blocks_[sequence.calls.body(of_call).block].tasks[of_task], calls[of_call]);
    }
  }

  /// Those of the device in the order in which they are allocated, then others sorted; equal
  /// neighbours are counted.
  void write_residents(const Sequence& sequence, const std::vector<std::string>& calls) {
    std::vector<Resident> always, for_a_while;
    std::vector<std::string> lines, elsewhere;
    for (const Resident& resident : sequence.residents) {
      if (resident.place != Residence::device) {
        elsewhere.push_back(text_of(sequence, resident, calls));
      } else {
        (resident.span ? for_a_while : always).push_back(resident);
      }
    }
    std::ranges::stable_sort(always, {}, &Resident::category);
    std::ranges::stable_sort(for_a_while, {}, [](const Resident& resident) {
      return std::tuple(resident.span->first.call, resident.span->first.task);
    });
    std::ranges::sort(elsewhere);
    for (const auto* residents : {&always, &for_a_while}) {
      for (const Resident& resident : *residents)
        lines.push_back(text_of(sequence, resident, calls));
    }
    lines.insert(lines.end(), elsewhere.begin(), elsewhere.end());
    for (auto line = lines.begin(); line != lines.end();) {
      const auto next = std::find_if(line, lines.end(), [&](const auto& l) { return l != *line; });
      text_ += fmt::format("  {} x {}\n", next - line, *line);
      line = next;
    }
  }

  [[nodiscard]] std::string text_of(const Sequence& sequence, const Resident& resident,
                                    const std::vector<std::string>& calls) const {
    constexpr std::array<std::string_view, 3> places = {"", " on host", " on drives"};
    std::string text = fmt::format(
        "resident {}{}: {} B", category_names[static_cast<std::size_t>(resident.category)],
        places[static_cast<std::size_t>(resident.place)], resident.bytes.value);
    const auto out = std::back_inserter(text);
    if (resident.tensor >= 0) fmt::format_to(out, " of {}", names_.tensor(resident.tensor));
    text += text_of_part(resident.layout, resident.shards, resident.masks,
                         resident.grid < 0 ? placement::Grid{} : program_.grids[resident.grid]);
    if (resident.grid >= 0) fmt::format_to(out, ", grid {}", grids_[resident.grid]);
    if (resident.versions != 1) fmt::format_to(out, ", {} versions", resident.versions);
    if (resident.span) {
      const auto name = [&](const TaskOfCall& of) {
        return blocks_[sequence.calls.body(of.call).block].tasks[of.task] + " of " + calls[of.call];
      };
      fmt::format_to(out, ", from {} to {}", name(resident.span->first), name(resident.span->last));
    }
    return text;
  }

  const Program& program_;
  GraphNames names_;
  GroupNames groups_;
  std::vector<std::vector<int>> devices_;  ///< by sequence
  std::vector<int> order_;                 ///< of sequences that somebody runs
  std::vector<std::string> grids_;
  std::vector<BlockText> blocks_;
  std::vector<std::string> titles_;  ///< by block
  std::string text_;
};

}  // namespace

std::string to_text(const Program& program, const model::Graph& graph) {
  return ProgramWriter(program, graph).write();
}

}  // namespace stratagem::program
