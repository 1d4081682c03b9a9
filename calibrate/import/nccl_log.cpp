// Reads runs of nccl-tests.
#include "calibrate/import/nccl_log.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "base/read_file.hpp"
#include "calibrate/nccl_tests.hpp"
#include "kernels/ranks/nccl_communicator.hpp"

namespace stratagem::calibrate {
namespace {

/// One size, as both formats say it.
struct Line {
  std::string where;  ///< for messages
  std::string operation;
  double bytes = 0;
  double time = 0;  ///< us
  double in_place = 0;
  double algorithm_rate = 0;  ///< GB/s
  double bus_rate = 0;
};

std::optional<double> number(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;  // from_chars reads "nan"
  return value;
}

/// Figures as printed: two digits after the point, fewer of large ones.
bool same(double printed, double computed) {
  return std::abs(printed - computed) <= 0.02 + 0.002 * printed;
}

/// Size over time is the algorithm bandwidth, and a factor of that the bus bandwidth.
void check_rates(const NcclLog& log, const Line& line) {
  const std::string is = nccl_test(log.collective).text;
  const double factor = bus_factor(log.collective, log.ranks);
  if (!same(line.bus_rate, factor * line.algorithm_rate)) {
    throw InputError(log.file, line.where,
                     is + ", whose busbw is " + std::to_string(factor) + " times its algbw",
                     std::to_string(line.bus_rate) + " and " + std::to_string(line.algorithm_rate));
  }
  const double rate = line.bytes / line.time / 1e3;
  // Times have two digits after the point, which for a few microseconds is less than a rate has.
  if (!same(line.algorithm_rate, rate) &&
      std::abs(line.algorithm_rate - rate) > rate * 0.01 / line.time) {
    throw InputError(log.file, line.where,
                     "an algbw of size / time, " + std::to_string(rate) + " GB/s",
                     std::to_string(line.algorithm_rate));
  }
}

/// Adds a line to the log; lines of no bytes say nothing.
void add(NcclLog& log, const Line& line) {
  if (line.bytes <= 0) return;
  const NcclTest& test = nccl_test(log.collective);
  if (test.reduces && (line.operation.empty() || line.operation == "none")) {
    throw InputError(log.file, line.where,
                     test.text + std::string(", or else the program that this is of (--program)"),
                     "results without a reduction");
  }
  if (log.ranks < 2) {
    throw InputError(log.file, line.where, "at least two ranks before the results",
                     std::to_string(log.ranks));
  }
  if (line.time <= 0 || line.in_place <= 0)
    throw InputError(log.file, line.where, "times above 0, out of place and in place", "");
  check_rates(log, line);
  log.rows.push_back({.size = Bytes{line.bytes},
                      .out_of_place = Seconds{line.time / 1e6},
                      .in_place = Seconds{line.in_place / 1e6}});
}

/// The text that goes to the screen.
class TextReader {
 public:
  TextReader(const std::string& file, const std::string& program) {
    log_.file = file;
    if (!program.empty()) log_.collective = nccl_test(program, file, "").kind;
  }

  NcclLog read(const std::string& text) {
    std::istringstream stream(text);
    int line_number = 0;
    for (std::string line; std::getline(stream, line);) {
      const std::size_t prefix = line.find("<stdout>:");  // of mpirun
      if (prefix != std::string::npos) line.erase(0, prefix + 9);
      read_line(line, "line " + std::to_string(++line_number));
    }
    if (log_.rows.empty()) {
      throw InputError(log_.file, "line " + std::to_string(line_number),
                       "results of a program of nccl-tests up to here, such as all_reduce_perf",
                       "none");
    }
    return std::move(log_);
  }

 private:
  void read_line(const std::string& line, const std::string& where) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) {
      if (word != "#") words.push_back(word);
    }
    if (words.size() < 2) return;
    if (words[0] == "Rank" || words[0] == "#Rank") return read_rank(line, where);
    if (words[0] == "size") {
      columns_ = words;
    } else if (const std::size_t name = line.find("Collective test starting: ");
               name != std::string::npos) {
      log_.collective = nccl_test(words.back(), log_.file, where).kind;
    } else if (const std::size_t at = line.find("nccl-library="); at != std::string::npos) {
      log_.version = kernels::nccl_version_text(std::atoi(line.c_str() + at + 13));
    } else if (const std::size_t said = line.find("NCCL version "); said != std::string::npos) {
      const std::string version = line.substr(said + 13);
      log_.version = version.substr(0, version.find_first_not_of("0123456789."));
    } else if (const auto bytes = number(words[0]); bytes && !columns_.empty()) {
      read_result(words, *bytes, where);
    }
  }

  /// `#  Rank  0 Group  0 Pid  28307 on  gpu59 device  0 [0x16] NVIDIA A100-SXM4-40GB`
  void read_rank(const std::string& line, const std::string& where) {
    const std::size_t host = line.find(" on ");
    const std::size_t device = line.find(" device ");
    const std::size_t bracket = line.find("] ");
    if (host == std::string::npos || device == std::string::npos || bracket == std::string::npos)
      throw InputError(log_.file, where, "a rank, its host, device and GPU", line);
    std::istringstream name(line.substr(host + 4, device - host - 4));
    std::string first;
    name >> first;
    hosts_.insert(first);
    if (hosts_.size() > 1)
      throw InputError(log_.file, where, "ranks of one server", std::to_string(hosts_.size()));
    log_.gpu = line.substr(bracket + 2);
    log_.gpu.erase(log_.gpu.find_last_not_of(" \r") + 1);
    ++log_.ranks;
  }

  /// Columns stand in the order of their header, which has other ones with other options.
  void read_result(const std::vector<std::string>& words, double bytes, const std::string& where) {
    const auto redop = std::ranges::find(columns_, "redop");  // not in every version
    if (words.size() < columns_.size()) {
      throw InputError(log_.file, where, std::to_string(columns_.size()) + " columns",
                       std::to_string(words.size()));
    }
    const auto is_time = [](const std::string& name) {
      return name == "time" || name == "cputime";
    };
    const auto first = std::ranges::find_if(columns_, is_time);
    const auto second =
        first == columns_.end() ? first : std::find_if(first + 1, columns_.end(), is_time);
    if (second == columns_.end())
      throw InputError(log_.file, where, "times out of place and in place", "");
    const auto value = [&](auto column) {
      const auto found = number(words[static_cast<std::size_t>(column - columns_.begin())]);
      if (!found) throw InputError(log_.file, where, "a number as " + *column, "");
      return *found;
    };
    check_results(words, where);
    add(log_, {.where = where,
               .operation = redop == columns_.end()
                                ? ""
                                : words[static_cast<std::size_t>(redop - columns_.begin())],
               .bytes = bytes,
               .time = value(first),
               .in_place = value(second),
               .algorithm_rate = value(first + 1),
               .bus_rate = value(first + 2)});
  }

  /// A collective that computed something wrong measures nothing; N/A where results were not
  /// checked.
  void check_results(const std::vector<std::string>& words, const std::string& where) const {
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      if (columns_[column] != "#wrong") continue;
      if (const std::optional<double> wrong = number(words[column]); wrong && *wrong > 0)
        throw InputError(log_.file, where, "results without wrong elements", words[column]);
    }
  }

  NcclLog log_;
  std::vector<std::string> columns_;
  std::set<std::string> hosts_;
};

/// The program is the first of the arguments that it was called with.
cost::CollectiveKind collective_of(const JsonReader& json, const std::string& program) {
  const auto arguments = json.find("args");
  if (!arguments || arguments->elements().empty())
    return nccl_test(program.empty() ? "all_reduce_perf" : program, json.file(), "").kind;
  const JsonReader first = arguments->elements().front();
  return nccl_test(first.text(), json.file(), first.path()).kind;
}

/// The file of -J: src/util.cu of nccl-tests. Numbers of ranks are the devices listed; without MPI
/// a file lists only the first, so there threads times GPUs each count.
NcclLog read_json(const std::string& file, const std::string& program) {
  const JsonReader json = JsonReader::from_file(file);
  NcclLog log{.file = file, .gpu = "", .version = "", .ranks = 0, .rows = {}};
  log.collective = collective_of(json, program);
  log.version =
      kernels::nccl_version_text(static_cast<int>(json.at("nccl_version").whole_number()));
  const JsonReader config = json.at("config");
  std::set<std::string> hosts;
  for (const JsonReader& device : config.at("devices").elements()) {
    hosts.insert(device.at("hostname").text());
    log.gpu = device.at("device_info").text();
    ++log.ranks;
  }
  if (hosts.size() > 1)
    config.at("devices").fail("ranks of one server", std::to_string(hosts.size()));
  const auto threads = static_cast<int>(config.at("nthreads").at_least(1));
  log.ranks = std::max(log.ranks, threads * static_cast<int>(config.at("ngpus").at_least(1)));
  for (const JsonReader& result : json.at("results").elements()) {
    const JsonReader out = result.at("out_of_place");
    for (const JsonReader& body : {out, result.at("in_place")}) {
      const auto wrong = body.find("nwrong");  // text where results were not checked
      if (wrong && wrong->is_number() && wrong->number() > 0)
        wrong->fail("results without wrong elements");
    }
    const auto time = [](const JsonReader& body) {
      return (body.has("cpu_time") ? body.at("cpu_time") : body.at("time")).number();
    };
    add(log, {.where = result.path(),
              .operation = result.at("redop").text(),
              .bytes = result.at("size").number(),
              .time = time(out),
              .in_place = time(result.at("in_place")),
              .algorithm_rate = out.at("alg_bw").number(),
              .bus_rate = out.at("bus_bw").number()});
  }
  if (log.rows.empty()) json.at("results").fail("at least one result");
  return log;
}

}  // namespace

NcclLog read_nccl_log(const std::string& file, const std::string& program) {
  const std::string text = read_file(file);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return read_json(file, program);
  return TextReader(file, program).read(text);
}

}  // namespace stratagem::calibrate
