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
#include "program/text/call_names.hpp"
#include "program/text/group_names.hpp"
#include "program/text/names.hpp"

namespace stratagem::program {
namespace {

class ProgramWriter {
 public:
  ProgramWriter(const Program& program, const model::Graph& graph, CallText calls)
      : program_(program),
        calls_(calls),
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
      for (const StoredCall& call : program_.sequences[sequence].calls.stored()) {
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
    const Sequence& stored = program_.sequences[s];
    const Sequence sequence = calls_ == CallText::in_loops ? stored : unrolled(stored);
    text_ += fmt::format("sequence of ranks {}\n", text_of_ranks(devices_[s]));
    for (const std::string& line : groups_.lines(s)) text_ += "  group " + line + "\n";
    const CallNames names = write_runs(s, sequence.calls);
    write_residents(sequence, names);
    for (int c = 0; c < static_cast<int>(sequence.calls.stored().size()); ++c) {
      const Loop* loop = sequence.calls.loop_of(c);
      if (loop != nullptr && loop->first == c) text_ += "  loop " + names.turns(*loop) + "\n";
      write_call(sequence.calls, c, names);
    }
    write_launches(sequence, names);
  }

  /// The launches of calls that alternate with others.
  void write_launches(const Sequence& sequence, const CallNames& names) {
    const std::vector<int> first = first_beside(sequence);
    for (const Launch& launch : sequence.launches) {
      const auto call = static_cast<std::size_t>(sequence.calls.number({launch.call, 0}));
      const bool alone = first[call] == static_cast<int>(call) &&
                         (call + 1 == first.size() || first[call + 1] != static_cast<int>(call));
      if (alone) continue;
      const std::vector<std::string>& tasks = tasks_of(sequence.calls, call);
      fmt::format_to(std::back_inserter(text_), "  launch {} to {} of {}\n", tasks[launch.first],
                     tasks[launch.end - 1], names.stored(launch.call));
    }
  }

  /// Writes what the calls of a sequence run: blocks for segments on grids. Returns the calls'
  /// names.
  CallNames write_runs(int s, const Calls& calls) {
    std::map<std::tuple<int, int, int>, std::string> runs;  // names
    std::unordered_map<std::string, std::string> known;     // names by what is run
    std::unordered_map<std::string, int> count;
    std::vector<std::string> of_calls;
    for (const StoredCall& call : calls.stored()) {
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
      of_calls.push_back(run->second);
    }
    return {calls, std::move(of_calls)};
  }

  /// A block, which communicators its groups are, where it runs, and on which tensors.
  [[nodiscard]] std::string what_runs(int sequence, const StoredCall& call) const {
    const BlockText& block = blocks_[call.block];
    std::string text = titles_[call.block];
    for (const int group : block.groups)
      text += (group == block.groups.front() ? ", in " : " ") + groups_.name(sequence, group);
    if (call.grid >= 0) text += ", grid " + grids_[call.grid];
    return text + text_of_binding(program_, block, call.segment, names_);
  }

  void write_call(const Calls& calls, int c, const CallNames& names) {
    const StoredCall& call = calls.stored()[c];
    const auto out = std::back_inserter(text_);
    const std::string indent = calls.loop_of(c) == nullptr ? "  " : "    ";
    fmt::format_to(out, "{}{}", indent, names.stored(c));
    if (call.lag > 0) fmt::format_to(out, ", lag {}", call.lag);
    if (call.versions_behind > 0) fmt::format_to(out, ", versions behind {}", call.versions_behind);
    text_ += "\n";
    std::vector<Wait> waits = call.waits;
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    for (const Wait& wait : waits) {
      fmt::format_to(out, "{}  {} after {} of {}\n", indent, blocks_[call.block].tasks[wait.task],
                     tasks_of(calls, wait.of_call)[wait.of_task],
                     names.waited_for(c, wait.of_call));
    }
    for (const HostWait& wait : call.host_waits) {
      std::string of = "all launched";
      if (wait.of_call >= 0) {
        of = tasks_of(calls, wait.of_call)[wait.of_task] + " of " +
             names.waited_for(c, wait.of_call);
      } else if (wait.of_task >= 0) {
        of = fmt::format("{} so far", stream_names[wait.of_task]);
      }
      const std::vector<std::string>& tasks = blocks_[call.block].tasks;
      fmt::format_to(out, "{}  host before {} after {}\n", indent,
                     wait.before < 0 ? "each task" : tasks[wait.before], of);
    }
    if (call.begins_pass >= 0) {
      fmt::format_to(out, "{}  host begins a pass before {}\n", indent,
                     blocks_[call.block].tasks[call.begins_pass]);
    }
  }

  /// The names of the tasks of a call.
  [[nodiscard]] const std::vector<std::string>& tasks_of(const Calls& calls,
                                                         std::size_t number) const {
    return blocks_[calls.body(number).block].tasks;
  }

  /// Those of the device in the order in which they are allocated, then others sorted; equal
  /// neighbours are counted.
  void write_residents(const Sequence& sequence, const CallNames& calls) {
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
                                    const CallNames& calls) const {
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
        return tasks_of(sequence.calls, of.call)[of.task] + " of " + calls.numbered(of.call);
      };
      fmt::format_to(out, ", from {} to {}", name(resident.span->first), name(resident.span->last));
      if (resident.until_next) text += ", and on until the next iteration";
    }
    return text;
  }

  const Program& program_;
  CallText calls_;
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

std::string to_text(const Program& program, const model::Graph& graph, CallText calls) {
  return ProgramWriter(program, graph, calls).write();
}

}  // namespace stratagem::program
