// Quantities as text: every unit, every refusal, and the round trip.
#include "base/quantity_text.hpp"

#include "tests/catch.hpp"

using namespace stratagem;

TEST_CASE("every unit of time reads as seconds") {
  CHECK(parse_quantity<Seconds>("1.5 s") == 1.5_s);
  CHECK(parse_quantity<Seconds>("12.5 ms") == 12.5_ms);
  CHECK(parse_quantity<Seconds>("3 us") == 3_us);
  CHECK(parse_quantity<Seconds>("7 ns") == 7_ns);
  CHECK(parse_quantity<Seconds>("250 ps") == Seconds{250e-12});
  CHECK(parse_quantity<Seconds>("1e3 us") == 1_ms);
}

TEST_CASE("every unit of size reads as bytes") {
  CHECK(parse_quantity<Bytes>("7 B") == 7_B);
  CHECK(parse_quantity<Bytes>("2 KB") == 2000_B);
  CHECK(parse_quantity<Bytes>("2 MB") == 2'000'000_B);
  CHECK(parse_quantity<Bytes>("31.75 GB") == 31.75_GB);
  CHECK(parse_quantity<Bytes>("1 TB") == 1000_GB);
  CHECK(parse_quantity<Bytes>("2 KiB") == 2048_B);
  CHECK(parse_quantity<Bytes>("1 MiB") == 1'048'576_B);
  CHECK(parse_quantity<Bytes>("32 GiB") == 32_GiB);
  CHECK(parse_quantity<Bytes>("1 TiB") == 1024_GiB);
}

TEST_CASE("rates read per second, networks also in bits") {
  CHECK(parse_quantity<BytesPerSecond>("450 GB/s") == 450_GBps);
  CHECK(parse_quantity<BytesPerSecond>("1 KiB/s") == BytesPerSecond{1024});
  // 100 Gb/s / 8 bits = 12.5 GB/s
  CHECK(parse_quantity<BytesPerSecond>("100 Gb/s") == 12.5_GBps);
  CHECK(parse_quantity<BytesPerSecond>("8 Mb/s") == BytesPerSecond{1e6});
  CHECK(parse_quantity<Flops>("6 GFLOP") == 6_GFLOP);
  CHECK(parse_quantity<Flops>("1 PFLOP") == 1000_TFLOP);
  CHECK(parse_quantity<FlopsPerSecond>("125 TFLOP/s") == 125_TFLOPps);
}

TEST_CASE("the blank between number and unit may be missing or many") {
  CHECK(parse_quantity<Bytes>("1GiB") == 1_GiB);
  CHECK(parse_quantity<Bytes>("1   GiB") == 1_GiB);
}

TEST_CASE("whatever is not a number and a unit of that dimension is refused") {
  CHECK_FALSE(parse_quantity<Seconds>(""));
  CHECK_FALSE(parse_quantity<Seconds>("s"));
  CHECK_FALSE(parse_quantity<Seconds>("5"));
  CHECK_FALSE(parse_quantity<Seconds>("5 GB"));
  CHECK_FALSE(parse_quantity<Seconds>("5 S"));
  CHECK_FALSE(parse_quantity<Seconds>(" 5 s"));
  CHECK_FALSE(parse_quantity<Seconds>("5 s "));
  CHECK_FALSE(parse_quantity<Seconds>("5 s 3 ms"));
  CHECK_FALSE(parse_quantity<Seconds>("inf s"));
  CHECK_FALSE(parse_quantity<Seconds>("nan s"));
  CHECK_FALSE(parse_quantity<Bytes>("1e308 TB"));  // beyond the largest double
  CHECK_FALSE(parse_quantity<Bytes>("5 GB/s"));
  CHECK_FALSE(parse_quantity<BytesPerSecond>("5 GB"));
  CHECK_FALSE(parse_quantity<Bytes>("5 gb"));
}

TEST_CASE("text has four significant digits and the largest unit that leaves at least one") {
  CHECK(to_text(1.68512_s) == "1.685 s");
  CHECK(to_text(31.75_GB) == "31.75 GB");
  CHECK(to_text(39.012_TFLOPps) == "39.01 TFLOP/s");
  CHECK(to_text(450_GBps) == "450 GB/s");
  CHECK(to_text(2_us) == "2 us");
  CHECK(to_text(Seconds{2.5e-13}) == "0.25 ps");
  CHECK(to_text(90_s) == "90 s");
  CHECK(to_text(32_GiB) == "34.36 GB");  // 32 * 1.073741824
  CHECK(to_text(Flops{1.5e19}) == "15 EFLOP");
  CHECK(to_text(Seconds{123456.7}) == "123457 s");
}

TEST_CASE("text rounds before it chooses the unit") {
  CHECK(to_text(Seconds{999.94e-6}) == "999.9 us");
  CHECK(to_text(Seconds{999.96e-6}) == "1 ms");
}

TEST_CASE("text of zero and of negative quantities keeps a plain unit") {
  CHECK(to_text(0_s) == "0 s");
  CHECK(to_text(0_B) == "0 B");
  CHECK(to_text(FlopsPerSecond{}) == "0 FLOP/s");
  CHECK(to_text(0_s - 2_ms) == "-2 ms");
}

TEST_CASE("what is printed reads back within the four digits") {
  for (int step = 0; step < 50; ++step) {  // 1e-12 s to 5e5 s
    const Seconds time{std::pow(10.0, 0.36 * step - 12)};
    const auto again = parse_quantity<Seconds>(to_text(time));
    REQUIRE(again);
    CHECK(close(*again, time, 0.5e-3));
  }
}

TEST_CASE("an error message shows an example that parses") {
  CHECK(expected_quantity<Seconds>().find("\"12.5 us\"") != std::string_view::npos);
  CHECK(expected_quantity<Bytes>().find("\"32 GiB\"") != std::string_view::npos);
  CHECK(expected_quantity<BytesPerSecond>().find("\"450 GB/s\"") != std::string_view::npos);
  CHECK(expected_quantity<Flops>().find("\"1.5 TFLOP\"") != std::string_view::npos);
  CHECK(expected_quantity<FlopsPerSecond>().find("\"125 TFLOP/s\"") != std::string_view::npos);
}
