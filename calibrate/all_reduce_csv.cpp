// Parses CSV files of all-reduce times: five columns, without quotes.
#include "calibrate/all_reduce_csv.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/input_error.hpp"
#include "base/read_file.hpp"

namespace stratagem::calibrate {

std::vector<NcclPoint> read_all_reduce_csv(const std::string& file, const std::string& gpu) {
  const std::string header = "gpu,ranks,bytes,out_of_place_us,in_place_us";
  std::istringstream in(read_file(file));
  std::string line;
  if (!std::getline(in, line) || line != header)
    throw InputError(file, "", "a file that begins with " + header, line);
  std::vector<NcclPoint> points;
  for (int number = 2; std::getline(in, line); ++number) {
    std::array<char, 16> name{};
    NcclPoint point;
    double bytes = 0;
    double time = 0;
    double in_place = 0;
    const int read = std::sscanf(line.c_str(), "%15[^,],%d,%lf,%lf,%lf", name.data(), &point.ranks,
                                 &bytes, &time, &in_place);
    const bool above_0 = bytes > 0 && time > 0 && std::isfinite(bytes) && std::isfinite(time);
    if (read != 5 || point.ranks < 2 || !above_0) {
      throw InputError(file, "line " + std::to_string(number),
                       "a GPU, at least 2 ranks, bytes and two times", line);
    }
    if (name.data() != gpu) continue;
    point.size = Bytes{bytes};
    point.time = time * 1_us;
    points.push_back(point);
  }
  if (points.empty()) throw InputError(file, "", "lines of the GPU \"" + gpu + "\"", "none");
  return points;
}

}  // namespace stratagem::calibrate
