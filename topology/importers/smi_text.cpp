// Parses the matrix of `nvidia-smi topo -m`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

#include "base/input_error.hpp"
#include "topology/importers/smi_matrix.hpp"

namespace stratagem::topology::importers {

namespace {

/// Without the escape sequences by which terminals underline the header.
std::string plain(const std::string& line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      text += line[i];
      continue;
    }
    while (i < line.size() && line[i] != 'm') ++i;
  }
  return text;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(plain(line));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// NVLinks of a cell "NV12"; 0 for any other.
int nvlinks_of(const std::string& cell) {
  int links = 0;
  if (!cell.starts_with("NV")) return 0;
  const auto [end, error] = std::from_chars(cell.data() + 2, cell.data() + cell.size(), links);
  return error == std::errc{} && end == cell.data() + cell.size() ? links : 0;
}

bool is_cell(const std::string& word) {
  constexpr std::array known{"X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
  return nvlinks_of(word) > 0 || std::ranges::find(known, word) != known.end();
}

/// A header names devices and no distances: GPU0 GPU1 ... CPU Affinity ...
bool is_header(const std::vector<std::string>& words) {
  return words.size() > 1 && words[0] == "GPU0" && !is_cell(words[1]);
}

class Parser {
 public:
  explicit Parser(const std::string& file) : file_(file) {}

  SmiMatrix parse(const std::string& text) {
    std::istringstream stream(text);
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
      ++number;
      const std::vector<std::string> words = words_of(line);
      if (matrix_.names.empty() && is_single(words)) {
        matrix_.names = {"GPU0"};
      } else if (matrix_.names.empty() && is_header(words)) {
        read_header(words);
      } else if (matrix_.cells.size() < matrix_.names.size() && !words.empty()) {
        read_row(words, number);
      }
    }
    if (matrix_.names.empty() || matrix_.cells.size() < matrix_.names.size()) {
      throw InputError(file_, "",
                       "a topology of NCCL (XML), or the whole matrix of nvidia-smi topo -m",
                       fmt::format("{} of {} rows", matrix_.cells.size(), matrix_.names.size()));
    }
    check_mirror();
    return std::move(matrix_);
  }

 private:
  /// The header of a machine with one GPU and no adapter.
  static bool is_single(const std::vector<std::string>& words) {
    return !words.empty() && words[0] == "GPU0" && (words.size() == 1 || words[1] == "CPU");
  }

  void read_header(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      if (word == "CPU" || word == "NUMA") break;
      matrix_.names.push_back(word);
    }
  }

  void read_row(const std::vector<std::string>& words, int number) {
    const std::size_t row = matrix_.cells.size();
    const std::string where = fmt::format("line {}", number);
    if (words[0] != matrix_.names[row])
      throw InputError(file_, where, "the row of " + matrix_.names[row], '"' + words[0] + '"');
    const std::size_t size = matrix_.names.size();
    if (words.size() < size + 1) {
      throw InputError(file_, where, fmt::format("{} cells", size),
                       std::to_string(words.size() - 1));
    }
    for (std::size_t i = 1; i <= size; ++i) {
      if (!is_cell(words[i]))
        throw InputError(file_, where, "X, NV#, PIX, PXB, PHB, NODE or SYS", '"' + words[i] + '"');
    }
    matrix_.cells.emplace_back(words.begin() + 1,
                               words.begin() + 1 + static_cast<std::ptrdiff_t>(size));
    for (std::string& cell : matrix_.cells.back()) {
      if (cell == "SOC") cell = "SYS";  // what it was called up to driver 384
    }
    matrix_.affinity.push_back(words.size() > size + 1 ? words[size + 1] : "");
  }

  void check_mirror() const {
    for (std::size_t a = 0; a < matrix_.names.size(); ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        const std::string where = matrix_.names[a] + " - " + matrix_.names[b];
        if ((matrix_.cells[a][b] == "X") != (a == b))
          throw InputError(file_, where, "X on the diagonal only", matrix_.cells[a][b]);
        if (matrix_.cells[a][b] != matrix_.cells[b][a]) {
          throw InputError(file_, where, "the same both ways",
                           matrix_.cells[a][b] + " and " + matrix_.cells[b][a]);
        }
      }
    }
  }

  const std::string& file_;
  SmiMatrix matrix_;
};

}  // namespace

int SmiMatrix::nvlinks(std::size_t a, std::size_t b) const { return nvlinks_of(cells[a][b]); }

SmiMatrix parse_smi_matrix(const std::string& text, const std::string& file) {
  return Parser(file).parse(text);
}

}  // namespace stratagem::topology::importers
