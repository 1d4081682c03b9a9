// Two lines of a table.
#include "report/own_and_found.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/quantity_text.hpp"
#include "report/columns.hpp"
#include "report/figure_text.hpp"
#include "report/why.hpp"
#include "report/wrapped.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {

std::string own_and_found(const std::string& what, const study::Outcome& own,
                          const study::Outcome& found) {
  std::vector<Column> columns = {{.heading = what, .left = true}, {"time"}};
  std::vector<Spent> spent;
  std::vector<std::string> memory;
  std::string reasons;
  const auto add = [&](const std::string& name, const study::Outcome& outcome) {
    if (outcome.status != study::Outcome::Status::ok)
      reasons +=
          wrapped(fmt::format("{} {} does not run: {}", name == "found" ? "The found" : "Its own",
                              what, outcome.reason),
                  2);
    if (!outcome.metrics) return;
    const sim::Metrics& metrics = *outcome.metrics;
    add_row(columns, {name, value_text("iteration_time", metrics.iteration_time.value)});
    spent.push_back(
        {metrics.iteration_time, metrics.exposed_communication, metrics.bubble_fraction});
    memory.push_back(to_text(outcome.memory.used));
  };
  add("its own", own);
  add("found", found);
  using Status = study::Outcome::Status;
  const bool both = own.status == Status::ok && found.status == Status::ok;
  if (both && spent[0].iteration < spent[1].iteration) {
    reasons += wrapped(
        fmt::format("Its own {} is {:.1f} % faster than the one found: keep it. The objective "
                    "leaves out a part of what was simulated.",
                    what, 100 * (spent[1].iteration / spent[0].iteration - 1)),
        2);
  }
  for (Column& column : shares_of_time(spent)) columns.push_back(std::move(column));
  columns.push_back({"memory", memory});
  if (spent.empty()) return reasons;
  return "Simulated:\n\n" + text_of(columns) + "\n" + reasons +
         wrapped("Of the time " + std::string(shares_legend) + " Memory: of the fullest GPU.", 2);
}

}  // namespace stratagem::report
