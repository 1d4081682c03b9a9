// What other programs call: questions and answers as JSON, as the command line reads and writes
// them. The library that is installed has this header alone.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__GNUC__)
#define STRATAGEM_EXPORT __attribute__((visibility("default")))
#else
#define STRATAGEM_EXPORT
#endif

namespace stratagem::api {

/// What a user's input can do wrong; what() is one line: file, JSON path, what was expected, what
/// was found.
class STRATAGEM_EXPORT Error : public std::runtime_error {
 public:
  Error(const std::string& line, std::string path, std::string expected, std::string found);
  ~Error() override;

  std::string path;  ///< JSON pointer; "": all of what the line begins with
  std::string expected;
  std::string found;
};

/// A scenario: JSON (docs/reference/scenario.md). Names of profiles, stacks, servers and plans are
/// sought in `folder`, then in the library. `name` is what errors call it.
struct Scenario {
  std::string text;
  std::string folder = ".";
  std::string name = "scenario";
};

/// Is told how many steps of a kind of work are done, of how many; from any thread, and may not
/// throw.
using Tell = std::function<void(const std::string& steps, std::size_t done, std::size_t all)>;

/// How runs are changed and simulated. Members are options of `stratagem simulate`; remedies are
/// sought only where they are asked for.
struct Asked {
  std::vector<std::string> set = {};   ///< "tensor=4"
  std::vector<std::string> grid = {};  ///< "tensor=1,2,4"
  std::string run = {};                ///< this one alone
  bool remedies = false;               ///< changes with which runs fit that do not
  bool why = false;                    ///< what twice as much of each thing would change
  bool exact = false;
  bool unfolded = false;
  int jobs = 0;  ///< runs at once; 0: as many as there are processors
  Tell tell = {};
};

/// Time and memory of every run, as `simulate --json` (scenarios/schema/report.schema.json) and
/// `simulate --csv` write them. The CSV's cost is empty without "price_per_gpu_hour".
struct Predicted {
  std::string json;
  std::string csv;
};

/// Predicts every run. All functions throw Error. All may be called from several threads but
/// use_library, which comes before the others.
STRATAGEM_EXPORT Predicted simulate(const Scenario& scenario, const Asked& asked = {});

/// The same as a page of HTML with tables and pictures, as `simulate --report` writes it.
STRATAGEM_EXPORT std::string simulated_page(const Scenario& scenario, const Asked& asked = {});

/// As the options of `stratagem search`.
struct Sought {
  std::vector<std::string> set = {};  ///< "KEY=VALUE" for all plans
  std::string least = "time";         ///< --for: time, cost or memory
  int best = 10;
  bool why = false;
  std::string store = {};  ///< SQLite file; "": none
  int jobs = 0;
  Tell tell = {};
};

/// The best plans of a scenario's space. `plans` is a scenario with them, for simulate(); `json` is
/// what `search --json` writes (search_report.schema.json), `page` what `search --report` writes.
struct Found {
  std::string json;
  std::string plans;  ///< "" where no plan fits
  std::string page;
};
STRATAGEM_EXPORT Found search(const Scenario& scenario, const Sought& sought = {});

/// As the options of `stratagem validate`.
struct Compared {
  std::string figure = {};  ///< this one alone, such as "iteration_time", or "fits"; "": all
  std::string group = {};   ///< groups whose names contain this
  int jobs = 0;
  Tell tell = {};
};

/// Predictions beside measurements, of scenario files and of folders of them: what `validate
/// --json` and `validate --report` write.
struct Validated {
  std::string json;
  std::string page;
};
STRATAGEM_EXPORT Validated validate(const std::vector<std::string>& scenarios,
                                    const Compared& compared = {});

/// A scenario from files of other programs (docs/guide/import.md), of which later ones count more:
/// {"scenario": {...}, "assumed": [...], "left_out": [...], "no_matter": [...]}. `format` "": as
/// each file looks.
STRATAGEM_EXPORT std::string import_files(const std::vector<std::string>& files,
                                          const std::vector<std::string>& set = {},
                                          const std::string& format = "");

/// Names that a scenario may have, of "profiles", "stacks", "models", "clusters", "schedules",
/// "precisions" or "optimizers".
STRATAGEM_EXPORT std::vector<std::string> names(const std::string& what);

/// Takes profiles, stacks, nodes and plans from a folder, as `--library` does.
STRATAGEM_EXPORT void use_library(const std::string& folder);

STRATAGEM_EXPORT std::string version();

}  // namespace stratagem::api
