// Reads tables whose header names each column and its unit.
#include "calibrate/measurements.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json_reader.hpp"
#include "base/quantity_text.hpp"
#include "calibrate/nccl_tests.hpp"
#include "cost/attention.hpp"
#include "cost/kernel.hpp"
#include "cost/nccl/constants.hpp"

namespace stratagem::calibrate {
namespace {

using cost::CollectiveKind;

/// The rows of one table, with cells found by the name of their column: "time" finds "time us".
class TableRows {
 public:
  explicit TableRows(const JsonReader& table) : rows_(table.at("rows").elements()) {
    for (const JsonReader& column : table.at("columns").elements()) {
      const std::string text = column.text();
      const std::size_t blank = text.find(' ');
      columns_.push_back({.name = text.substr(0, blank),
                          .unit = blank == std::string::npos ? "" : text.substr(blank + 1),
                          .header = column});
    }
    if (rows_.empty()) table.at("rows").fail("at least one row", "[]");
    for (const JsonReader& row : rows_) {
      cells_.push_back(row.elements());
      if (cells_.back().size() != columns_.size()) {
        row.fail(std::to_string(columns_.size()) + " values, one per column", row.dump());
      }
    }
  }

  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] bool has(const std::string& name) const { return find(name).has_value(); }

  [[nodiscard]] const JsonReader& cell(std::size_t row, const std::string& name) const {
    const auto column = find(name);
    if (!column) rows_[row].fail("a column \"" + name + "\"", "");
    return cells_[row][*column];
  }

  [[nodiscard]] std::int64_t count(std::size_t row, const std::string& name) const {
    return cell(row, name).at_least(1);
  }

  /// The cell times the unit of its column.
  template <typename Q>
  [[nodiscard]] Q quantity(std::size_t row, const std::string& name) const {
    const JsonReader& json = cell(row, name);
    const Column& column = columns_[*find(name)];
    const auto unit = parse_quantity<Q>("1 " + column.unit);
    if (!unit) {
      column.header.fail(
          "a name and a unit, \"" + name + "\" being " + std::string(expected_quantity<Q>()),
          column.header.dump());
    }
    const double number = json.number();
    if (!(number > 0)) json.fail("a number of more than 0", json.dump());
    const Q value = number * *unit;
    if (const auto bounds = beyond_bounds(value)) json.fail(std::string(*bounds), json.dump());
    return value;
  }

  /// Throws for a column that is not among `names`, and for cells of those that only people read.
  void allow(const std::vector<std::string>& names) const {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      check_word(columns_[c].header, columns_[c].name, names, "one of the known columns");
      for (const std::vector<JsonReader>& row : cells_) check_unread(columns_[c].name, row[c]);
    }
  }

 private:
  struct Column {
    std::string name, unit;
    JsonReader header;
  };
  /// A spread is a share of the time, sizes and repeats are counted.
  static void check_unread(const std::string& column, const JsonReader& cell) {
    if (column == "rows" || column == "columns" || column == "repeats") {
      static_cast<void>(cell.at_least(1));
    } else if (column == "spread" && !(cell.number() >= 0)) {
      cell.fail("a share of 0 or more", cell.dump());
    }
  }
  [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].name == name) return i;
    }
    return std::nullopt;
  }
  std::vector<JsonReader> rows_;
  std::vector<Column> columns_;
  std::vector<std::vector<JsonReader>> cells_;
};

/// Which rows of a table are alike in shape: those that agree in every word of its "family", each a
/// column, "decade of" a column, or of products the "smallest", "middle" or "largest" of m, n and
/// k. All rows of a table that was measured for a scenario are one family.
class Families {
 public:
  Families(const JsonReader& table, const TableRows& rows, std::vector<std::string> otherwise)
      : rows_(rows), words_(std::move(otherwise)) {
    scenario_ = read_or_empty(table, "scenario", &JsonReader::text);
    const auto stated = table.find("family");
    if (!stated) return;
    words_.clear();
    for (const JsonReader& word : stated->elements()) {
      check(word);
      words_.push_back(word.text());
    }
  }

  [[nodiscard]] std::string of(std::size_t row) const {
    if (!scenario_.empty()) return "scenario " + scenario_;
    std::string family;
    for (const std::string& word : words_)
      family += (family.empty() ? "" : ", ") + word + " " + value(row, word);
    return family;
  }

 private:
  static constexpr std::string_view decade = "decade of ";

  [[nodiscard]] static bool of_product(const std::string& word) {
    return word == "smallest" || word == "middle" || word == "largest";
  }

  void check(const JsonReader& word) const {
    const std::string text = word.text();
    if (of_product(text) && rows_.has("m") && rows_.has("n") && rows_.has("k")) return;
    const std::string column = text.starts_with(decade) ? text.substr(decade.size()) : text;
    if (!rows_.has(column))
      word.fail(
          "a column, \"decade of\" a column, or of m, n and k the \"smallest\", \"middle\" or "
          "\"largest\"",
          word.dump());
    if (column == text) return;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const JsonReader& cell = rows_.cell(row, column);
      if (!(cell.number() > 0)) cell.fail("a number of more than 0", cell.dump());
    }
  }

  [[nodiscard]] std::string value(std::size_t row, const std::string& word) const {
    if (word.starts_with(decade)) {
      const double number = rows_.cell(row, word.substr(decade.size())).number();
      return std::to_string(static_cast<int>(std::floor(std::log10(number))));
    }
    if (!of_product(word)) return rows_.cell(row, word).dump();
    std::array sizes{rows_.count(row, "m"), rows_.count(row, "n"), rows_.count(row, "k")};
    std::ranges::sort(sizes);
    return std::to_string(sizes[word == "smallest" ? 0 : word == "middle" ? 1 : 2]);
  }

  const TableRows& rows_;
  std::vector<std::string> words_;
  std::string scenario_;
};

model::DataType read_type(const JsonReader& json) {
  const std::vector<model::DataType>& all = model::data_types();
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const auto type : all) names.push_back(model::to_text(type));
  const std::string name = json.one_of(names);
  return all[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
}

Timing read_timing(const JsonReader& json) {
  return json.one_of({"kernel", "eager"}) == "kernel" ? Timing::kernel : Timing::eager;
}

std::optional<Seconds> pace_of(const TableRows& rows, std::size_t row) {
  if (!rows.has("pace")) return std::nullopt;
  return rows.quantity<Seconds>(row, "pace");
}

Device read_device(const JsonReader& json) {
  Device device{.gpu = json.at("gpu").text(),
                .architecture = json.at("architecture").text(),
                .multiprocessors = static_cast<double>(json.at("multiprocessors").at_least(1)),
                .peak = {},
                .memory_bandwidth = json.at("memory_bandwidth").quantity<BytesPerSecond>(),
                .nvlink = read_or_empty(json, "nvlink", &JsonReader::quantity<BytesPerSecond>),
                .memory = read_if_there(json, "memory", &JsonReader::quantity<Bytes>),
                .pace = {}};
  for (const std::string& type : json.at("peak").keys()) {
    const JsonReader peak = json.at("peak").at(type);
    device.peak[type] = peak.quantity<FlopsPerSecond>();
    if (device.peak[type] <= FlopsPerSecond{}) peak.fail("a rate above 0", peak.dump());
  }
  if (device.memory_bandwidth <= BytesPerSecond{})
    json.at("memory_bandwidth").fail("a rate above 0", json.at("memory_bandwidth").dump());
  if (const auto pace = json.find("pace")) {
    device.pace = pace->quantity<Seconds>();
    if (*device.pace <= Seconds{}) pace->fail("a time above 0", pace->dump());
  }
  return device;
}

/// As BLAS writes them: of A, then of B.
std::string read_transposes(const JsonReader& json) {
  return json.one_of({"NN", "NT", "TN", "TT"});
}

/// The bytes, up to 16, at whose multiples all rows of a product in 16 bits begin.
int alignment_of(const GemmPoint& point) {
  int bytes = 16;
  for (const std::int64_t row : {point.transposes[0] == 'T' ? point.m : point.k,
                                 point.transposes[1] == 'T' ? point.k : point.n, point.n})
    while (2 * row % bytes != 0) bytes /= 2;
  return bytes;
}

GemmTable read_gemms(const JsonReader& json, const Device& device) {
  const TableRows rows(json);
  rows.allow(
      {"m", "n", "k", "batch", "transposes", "bytes", "time", "rate", "spread", "repeats", "pace"});
  GemmTable table{.type = read_type(json.at("type")), .points = {}};
  if (!device.peak.contains(model::to_text(table.type))) {
    json.at("type").fail("a data type that /device/peak has", json.at("type").dump());
  }
  if (read_timing(json.at("timing")) != Timing::kernel) {
    json.at("timing").fail("\"kernel\": GEMMs are fitted to device times",
                           json.at("timing").dump());
  }
  const Families families(json, rows, {"n", "k"});
  const bool unaligned = json.has("operation");
  if (unaligned) static_cast<void>(json.at("operation").one_of({"unaligned"}));
  if (unaligned && model::size_of(table.type) != 2_B)
    json.at("type").fail("a type of 16 bits for unaligned products", json.at("type").dump());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    GemmPoint point{
        .m = rows.count(row, "m"),
        .n = rows.count(row, "n"),
        .k = rows.count(row, "k"),
        .batch = rows.has("batch") ? rows.count(row, "batch") : 1,
        .transposes = rows.has("transposes") ? read_transposes(rows.cell(row, "transposes")) : "",
        .time = {},
        .family = families.of(row),
        .pace = pace_of(rows, row)};
    const Flops flops{2.0 * static_cast<double>(point.m) * static_cast<double>(point.n) *
                      static_cast<double>(point.k) * static_cast<double>(point.batch)};
    point.time = rows.has("rate") ? flops / rows.quantity<FlopsPerSecond>(row, "rate")
                                  : rows.quantity<Seconds>(row, "time");
    if (!unaligned) {
      table.points.push_back(point);
      continue;
    }
    const int alignment = alignment_of(point);
    if (alignment == 16)
      rows.cell(row, "transposes")
          .fail("rows that begin at no multiple of 16 bytes", point.transposes);
    table.unaligned.emplace_back(point, alignment);
  }
  return table;
}

StreamingTable read_streaming(const JsonReader& json, const std::string& kind) {
  const TableRows rows(json);
  rows.allow({"rows", "columns", "bytes", "time", "rate", "spread", "repeats", "pace"});
  StreamingTable table{.kind = kind,
                       .operation = json.at("operation").text(),
                       .timing = read_timing(json.at("timing")),
                       .points = {}};
  if (kind == "norm" && table.operation.starts_with("RMS norm"))
    json.at("kind").fail("\"rms_norm\", a kind of its own since 2026-11-23", "\"norm\"");
  static_cast<void>(read_type(json.at("type")));
  const Families families(
      json, rows,
      rows.has("bytes") ? std::vector<std::string>{"decade of bytes"} : std::vector<std::string>{});
  for (std::size_t row = 0; row < rows.size(); ++row) {
    StreamingPoint point{
        .bytes = very_large, .time = {}, .family = families.of(row), .pace = pace_of(rows, row)};
    if (rows.has("bytes")) point.bytes = static_cast<double>(rows.count(row, "bytes")) * 1_B;
    point.time = rows.has("rate") ? point.bytes / rows.quantity<BytesPerSecond>(row, "rate")
                                  : rows.quantity<Seconds>(row, "time");
    table.points.push_back(point);
  }
  return table;
}

AttentionTable read_attention(const JsonReader& json, const std::string& kind,
                              const Device& device) {
  const TableRows rows(json);
  const std::vector<std::string> sizes{"batch", "heads", "queries", "keys", "size"};
  std::vector<std::string> columns = sizes;
  columns.insert(columns.end(), {"causal", "bytes", "time", "spread", "repeats"});
  rows.allow(columns);
  static_cast<void>(read_timing(json.at("timing")));
  const std::vector<std::string> names(cost::attention_implementations.begin(),
                                       cost::attention_implementations.end());
  const auto operation = json.find("operation");
  AttentionTable table{.implementation = operation ? operation->one_of(names) : "stratagem",
                       .kind = kind == "attention" ? cost::KernelKind::attention
                                                   : cost::KernelKind::attention_backward,
                       .type = read_type(json.at("type")),
                       .points = {}};
  if (!device.peak.contains(model::to_text(table.type)))
    json.at("type").fail("a data type that /device/peak has", json.at("type").dump());
  const double products = table.kind == cost::KernelKind::attention ? 2 : 5;
  const Families families(json, rows, {"size", "causal"});
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const JsonReader& causal = rows.cell(row, "causal");
    if (causal.at_least(1) > 2)
      causal.fail("1, or 2 where a causal mask hides half", causal.dump());
    const auto number = [&](const std::string& column) {
      return static_cast<double>(rows.count(row, column));
    };
    AttentionPoint point{.flops = Flops{2 * products / static_cast<double>(causal.at_least(1))},
                         .bytes = static_cast<double>(rows.count(row, "bytes")) * 1_B,
                         .time = rows.quantity<Seconds>(row, "time"),
                         .size = static_cast<int>(rows.count(row, "size")),
                         .sizes = {.heads = number("batch") * number("heads"),
                                   .queries = number("queries"),
                                   .keys = number("keys"),
                                   .causal = causal.at_least(1) == 2},
                         .family = families.of(row)};
    for (const std::string& size : sizes) {
      point.flops = number(size) * point.flops;
      point.shape += (point.shape.empty() ? "" : " x ") + std::to_string(rows.count(row, size));
    }
    if (point.sizes.causal) point.shape += ", causal";
    table.points.push_back(point);
  }
  return table;
}

AllReduceTable read_all_reduces(const JsonReader& json, const Device& device) {
  if (device.nvlink == BytesPerSecond{}) json.fail("/device/nvlink, the bandwidth of one link", "");
  const TableRows rows(json);
  rows.allow({"ranks", "links", "size", "time"});
  static_cast<void>(read_type(json.at("type")));
  static_cast<void>(read_timing(json.at("timing")));
  const Families families(json, rows, {"ranks"});
  AllReduceTable table;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    table.points.push_back({.ranks = static_cast<int>(rows.cell(row, "ranks").at_least(2)),
                            .links = static_cast<int>(rows.count(row, "links")),
                            .size = rows.quantity<Bytes>(row, "size"),
                            .time = rows.quantity<Seconds>(row, "time"),
                            .family = families.of(row)});
  }
  return table;
}

/// Throws InputError for a group that so many ranks do not have.
void check_group(const TableRows& rows, std::size_t row, int all_ranks) {
  const std::int64_t ranks = rows.cell(row, "ranks").at_least(2),
                     stride = rows.count(row, "stride");
  if (ranks * stride > all_ranks)
    rows.cell(row, "ranks")
        .fail("a group among " + std::to_string(all_ranks) + " ranks",
              std::to_string(ranks) + " ranks " + std::to_string(stride) + " apart");
}

/// Rows of `calibrate measure --backend cuda`: those of the first GPUs of a server, which worked
/// alone, as NCCL's model speaks of them. Other groups are recorded, and nothing is fitted to them.
std::vector<NcclPoint> read_nccl_rows(const JsonReader& json, const Measurements& from) {
  const TableRows rows(json);
  rows.allow({"ranks", "stride", "groups", "size", "time", "spread", "repeats"});
  static_cast<void>(read_type(json.at("type")));
  const bool even = from.ranks % from.servers == 0;  // or else nobody knows who stands where
  std::vector<NcclPoint> points;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    check_group(rows, row, from.ranks);
    const NcclPoint point{.ranks = static_cast<int>(rows.cell(row, "ranks").at_least(2)),
                          .size = rows.quantity<Bytes>(row, "size"),
                          .time = rows.quantity<Seconds>(row, "time")};
    const bool alone = rows.count(row, "stride") == 1 && rows.count(row, "groups") == 1;
    if (alone && even && point.ranks <= from.ranks_of_server()) points.push_back(point);
  }
  return points;
}

/// Points stand in the table, or in a file of their own, beside that of the measurements.
NcclTable read_nccl(const JsonReader& json, const Measurements& from, CollectiveKind kind) {
  static_cast<void>(read_timing(json.at("timing")));
  if (!cost::nccl::is_version(json.at("version").text()))
    json.at("version").fail("a version of NCCL as \"2.28.9\"", json.at("version").dump());
  NcclTable table{.collective = kind,
                  .cluster = json.at("cluster").text(),
                  .version = json.at("version").text(),
                  .fitted_ranks = {},
                  .points = {}};
  if (json.has("rows")) {
    table.points = read_nccl_rows(json, from);
  } else {
    const std::filesystem::path folder = std::filesystem::path(from.file).parent_path();
    table.points = read_all_reduce_csv(
        (folder / json.at("file").text()).lexically_normal().string(), json.at("gpu").text());
  }
  for (const JsonReader& ranks : json.at("fitted_ranks").elements())
    table.fitted_ranks.push_back(static_cast<int>(ranks.at_least(2)));
  return table;
}

MpiTable read_mpi(const JsonReader& json, CollectiveKind kind, int all_ranks) {
  const TableRows rows(json);
  rows.allow({"ranks", "stride", "size", "time", "spread", "repeats"});
  static_cast<void>(read_type(json.at("type")));
  static_cast<void>(read_timing(json.at("timing")));
  MpiTable table{.collective = kind, .points = {}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    check_group(rows, row, all_ranks);
    const MpiPoint point{.ranks = static_cast<int>(rows.cell(row, "ranks").at_least(2)),
                         .stride = static_cast<int>(rows.count(row, "stride")),
                         .size = rows.quantity<Bytes>(row, "size"),
                         .time = rows.quantity<Seconds>(row, "time")};
    table.points.push_back(point);
  }
  return table;
}

/// A count that files of one core do not have.
int count_or_one(const JsonReader& json, const char* key) {
  const auto found = json.find(key);
  return found ? static_cast<int>(found->at_least(1)) : 1;
}

/// The kinds that a table may be of.
struct TableKinds {
  std::vector<std::string> all;
  std::map<std::string, CollectiveKind> over_nccl, over_mpi;
};

TableKinds table_kinds() {
  TableKinds kinds;
  kinds.all.assign(cost::kernel_kind_names.begin(), cost::kernel_kind_names.end());
  kinds.all.insert(kinds.all.end(), {"all_reduce", "kernel_gap", "host_launch"});
  for (const NcclTest& test : nccl_tests()) {
    kinds.all.push_back("nccl_" + cost::to_text(test.kind));
    kinds.over_nccl[kinds.all.back()] = test.kind;
  }
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
        CollectiveKind::all_to_all, CollectiveKind::broadcast, CollectiveKind::reduce,
        CollectiveKind::send}) {
    kinds.all.push_back("mpi_" + cost::to_text(kind));
    kinds.over_mpi[kinds.all.back()] = kind;
  }
  return kinds;
}

void add_times(const JsonReader& table, std::vector<Seconds>& times) {
  const TableRows rows(table);
  rows.allow({"time"});
  static_cast<void>(read_timing(table.at("timing")));
  for (std::size_t row = 0; row < rows.size(); ++row)
    times.push_back(rows.quantity<Seconds>(row, "time"));
}

/// Adds a table to those of its kind.
void read_table(const JsonReader& table, const TableKinds& kinds, Measurements& measurements) {
  const std::string kind = table.at("kind").one_of(kinds.all);
  if (kind == "gemm") {
    measurements.gemms.push_back(read_gemms(table, measurements.device));
  } else if (kind == "all_reduce") {
    measurements.all_reduces.push_back(read_all_reduces(table, measurements.device));
  } else if (const auto found = kinds.over_nccl.find(kind); found != kinds.over_nccl.end()) {
    const bool all_reduce = found->second == CollectiveKind::all_reduce;
    const NcclTable read = read_nccl(table, measurements, found->second);
    if (!read.points.empty())
      (all_reduce ? measurements.nccl_all_reduces : measurements.nccl_others).push_back(read);
  } else if (const auto ranks = kinds.over_mpi.find(kind); ranks != kinds.over_mpi.end()) {
    measurements.mpi.push_back(read_mpi(table, ranks->second, measurements.ranks));
  } else if (kind == "attention" || kind == "attention_backward") {
    measurements.attentions.push_back(read_attention(table, kind, measurements.device));
  } else if (kind == "kernel_gap") {
    add_times(table, measurements.kernel_gaps);
  } else if (kind == "host_launch") {
    add_times(table, measurements.host_launches);
  } else {
    measurements.streaming.push_back(read_streaming(table, kind));
  }
}

}  // namespace

cost::KernelPass pass_of(const std::string& operation) {
  return operation.ends_with("gradient") ? cost::KernelPass::gradient : cost::KernelPass::forward;
}

Measurements read_measurements(const JsonReader& json, const std::string& file) {
  if (json.at("schema").whole_number() != 1) json.at("schema").fail("1", json.at("schema").dump());
  Measurements measurements{
      .file = file,
      .device = read_device(json.at("device")),
      .ranks = count_or_one(json, "ranks"),
      .servers = count_or_one(json, "servers"),
      .origin = {.host = read_or_empty(json, "host", &JsonReader::text),
                 .date = read_or_empty(json, "date", &JsonReader::text),
                 .source = json.at("source").text(),
                 .status = json.at("status").one_of({"measured", "published"}),
                 .note = read_or_empty(json, "note", &JsonReader::text)},
      .gemms = {},
      .streaming = {},
      .attentions = {},
      .all_reduces = {},
      .nccl_all_reduces = {},
      .nccl_others = {},
      .mpi = {},
      .kernel_gaps = {},
      .host_launches = {}};
  static_cast<void>(count_or_one(json, "cores"));
  if (measurements.servers > measurements.ranks)
    json.at("servers").fail("no more servers than ranks", json.at("servers").dump());
  const TableKinds kinds = table_kinds();
  for (const JsonReader& table : json.at("tables").elements())
    read_table(table, kinds, measurements);
  json.finish();
  return measurements;
}

Measurements read_measurements(const std::string& file) {
  return read_measurements(JsonReader::from_file(file), file);
}

}  // namespace stratagem::calibrate
