// A picture of one period, then figures.
#include "report/order_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/quantity_text.hpp"
#include "report/own_and_found.hpp"
#include "report/wrapped.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {
namespace {

using search::Block;
using search::PipelineCells;
using search::Repetend;

/// "F2+1": the cell of the micro-batch after the oldest that is under way.
std::string label(const Block& block, int micro_batch) {
  return micro_batch == 0 ? block.name : fmt::format("{}+{}", block.name, micro_batch);
}

/// One period, unit by unit, from the moment when a micro-batch begins: each cell's label where it
/// begins, a line where it goes on.
std::string picture(const PipelineCells& cells, const Repetend& found) {
  const auto& blocks = cells.problem.blocks;
  const auto rounds = [&](std::size_t b) { return found.begins[b] / found.period; };
  int most = 0;
  std::size_t width = 1;
  for (std::size_t b = 0; b < blocks.size(); ++b) most = std::max(most, rounds(b));
  for (std::size_t b = 0; b < blocks.size(); ++b)
    width = std::max(width, label(blocks[b], most - rounds(b)).size());
  std::vector<std::vector<std::string>> rows(
      cells.problem.limits.size(), std::vector<std::string>(found.period, std::string(width, '.')));
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (const int device : blocks[b].devices) {
      for (int t = 0; t < blocks[b].span; ++t) {
        std::string& unit = rows[device][(found.begins[b] + t) % found.period];
        unit = t == 0 ? fmt::format("{:<{}}", label(blocks[b], most - rounds(b)), width)
                      : std::string(width, '-');
      }
    }
  }
  std::string text;
  for (std::size_t device = 0; device < rows.size(); ++device)
    text += fmt::format("  {:<3} {}\n", device, fmt::join(rows[device], " "));
  return text;
}

bool fits(const study::Outcome& outcome) { return outcome.status == study::Outcome::Status::ok; }

std::string proved(int found, int least, const std::string& what) {
  if (found == least) return fmt::format("{} {}, and none is shorter", what, found);
  return fmt::format("{} {}, and none is shorter than {} (the solver gave up)", what, found, least);
}

}  // namespace

std::string order_table(const study::Run& run, const PipelineCells& cells, const Repetend& found,
                        const study::Outcome& own, const study::Outcome& with_found) {
  std::string text = fmt::format("The cells of \"{}\" can repeat every {} units of {}\n\n",
                                 run.name, found.period, to_text(cells.unit));
  text += picture(cells, found) + "\n";
  text += wrapped(fmt::format("A line for each class of devices; F2+1 is the forward cell of stage "
                              "2 for the micro-batch after the oldest that is under way. {}. {}. "
                              "Rounding to units changes a device's work by at most {:.1f} %.",
                              proved(found.period, found.least_period, "Period"),
                              proved(found.latency, found.least_latency, "A micro-batch takes"),
                              100 * cells.rounding),
                  2);
  text += "\n" + own_and_found("order", own, with_found);
  if (fits(own) && fits(with_found) &&
      own.metrics->iteration_time < with_found.metrics->iteration_time) {
    text +=
        "\nIts own order is faster with so few micro-batches: the found one repeats from the "
        "first to the last.\n";
  }
  return text;
}

std::string no_order(const study::Run& run, const search::PipelineCells& cells) {
  const std::string why =
      cells.problem.asked.empty()
          ? "a device's memory does not hold what one micro-batch leaves"
          : "its op-orders contradict each other, or ask for more micro-batches "
            "at once than memory holds";
  return fmt::format("The cells of \"{}\" cannot repeat: {}\n", run.name, why);
}

}  // namespace stratagem::report
