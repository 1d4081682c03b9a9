// The main function of every test program: ours with Catch2 version 2; version 3 links its own.
#if __has_include(<catch2/catch_test_macros.hpp>)
// Catch2::Catch2WithMain has it.
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
