// Times of collectives: what was measured, averaged, and errors that leave families out.
#include "calibrate/fit/mpi.hpp"

#include "cost/measured_times.hpp"
#include "tests/catch.hpp"

using namespace stratagem;
using namespace stratagem::calibrate;

namespace {

/// Measurements whose times follow `time` of ranks, stride and size.
template <typename Time>
Measurements measured(int ranks, int servers, const std::vector<std::pair<int, int>>& groups,
                      const Time& time) {
  MpiTable table{.collective = cost::CollectiveKind::all_gather, .points = {}};
  for (const auto& [size_of_group, stride] : groups) {
    for (double size = 1024; size <= 1024 * 1024; size *= 4)
      table.points.push_back({.ranks = size_of_group,
                              .stride = stride,
                              .size = Bytes{size},
                              .time = Seconds{time(size_of_group, stride, size)}});
  }
  Measurements result{
      .file = "test", .ranks = ranks, .servers = servers, .origin = {.host = "here"}};
  result.origin.source = "test";
  result.mpi = {table};
  return result;
}

/// Latency and bytes of a ring: straight in size and, but for the share of bytes, in ranks.
double ring(int ranks, int, double size) {
  return (ranks - 1) * 2e-6 + (ranks - 1.0) / ranks * size / 4e9;
}

TEST_CASE("times that are straight in the size are predicted where a size is left out") {
  const auto fits = fit_mpi({measured(2, 1, {{2, 1}}, &ring)});
  REQUIRE(fits.size() == 1);
  const MpiFit& fit = fits.at("all_gather");
  CHECK(fit.points == 6);
  CHECK(fit.median_error < 1e-3);  // four digits are kept
  CHECK(fit.sizes_error < 2e-3);
  CHECK(fit.ranks_error == 0);  // nothing lies between 2 and 2
  CHECK(fit.times.provenance == cost::Provenance::measured);
  CHECK(close(cost::measured_time(fit.times, 2, 50_KB), Seconds{ring(2, 1, 50'000)}, 1e-3));
}

TEST_CASE("the error says how far numbers of ranks are from a line between others") {
  // Left out, 3 of 2, 3, 4 lies on a line with them in its latency; in its bytes 1/2, 2/3, 3/4 does
  // not: 5/8 against 2/3. 1 KiB is latency, 1 MiB bytes: between 0 and 6.25 %.
  const auto fits = fit_mpi({measured(4, 1, {{2, 1}, {2, 2}, {3, 1}, {4, 1}}, &ring)});
  const MpiFit& fit = fits.at("all_gather");
  CHECK(fit.ranks_error > 0.005);
  CHECK(fit.ranks_error < 0.0626);
  CHECK(fit.times.error == Approx(std::max(fit.ranks_error, fit.sizes_error)).epsilon(1e-3));
}

TEST_CASE("strides are averaged, as factors") {
  const auto strided = [](int ranks, int stride, double size) {
    return ring(ranks, stride, size) * (stride == 1 ? 0.5 : 2);
  };
  const auto fits = fit_mpi({measured(4, 1, {{2, 1}, {2, 2}}, strided)});
  const MpiFit& fit = fits.at("all_gather");
  CHECK(close(cost::measured_time(fit.times, 2, 1024_B), Seconds{ring(2, 1, 1024)}, 1e-3));
  CHECK(fit.median_error > 0.5);  // half of the points are twice as fast, half half as fast
}

TEST_CASE("groups that reach beyond a server are not taken for groups within one") {
  // Two servers of 4 ranks: 2 ranks 4 apart are on both, 2 ranks 2 apart on one.
  const auto across = [](int ranks, int stride, double size) {
    return stride * ranks > 4 ? 1 : ring(ranks, stride, size);
  };
  const auto fits = fit_mpi({measured(8, 2, {{2, 1}, {2, 2}, {2, 4}, {8, 1}}, across)});
  const MpiFit& fit = fits.at("all_gather");
  CHECK(fit.points == 12);
  CHECK(fit.times.by_ranks.size() == 1);
  CHECK(fit.median_error < 1e-3);
}

TEST_CASE("of servers with different numbers of ranks nobody knows whose groups are within one") {
  // 7 ranks on 2 servers are 4 and 3, or 3 and 4: 2 neighbours may be ranks of both. Nor are 2
  // ranks on 3 servers, though no rank a server divides by everything.
  CHECK(fit_mpi({measured(7, 2, {{2, 1}, {3, 1}}, &ring)}).empty());
  CHECK(fit_mpi({measured(2, 3, {{2, 1}}, &ring)}).empty());
  CHECK(fit_mpi({measured(6, 2, {{3, 1}}, &ring)}).size() == 1);
  // Runs of two are not alike on servers of three.
  CHECK(fit_mpi({measured(6, 2, {{2, 1}}, &ring)}).empty());
}

TEST_CASE("files without collectives give none") {
  CHECK(fit_mpi({Measurements{.file = "test"}}).empty());
}

}  // namespace
