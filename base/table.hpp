// A macro that makes a table of things with a file each, such as schedules. The file defines a
// function that returns its row:
//
//   Schedule gpipe() { return {.name = "gpipe", ...}; }
//
// and the table names that function: STRATAGEM_TABLE(schedules, Schedule, gpipe, one_f_one_b). No
// header declares it. Statics that register themselves would be dropped by the linker.
#pragma once

#include <initializer_list>
#include <vector>

namespace stratagem {

template <typename T>
using RowFunction = T();

template <typename T>
std::vector<T> rows_returned_by(std::initializer_list<RowFunction<T>*> functions) {
  std::vector<T> rows;
  for (RowFunction<T>* const row : functions) rows.push_back(row());
  return rows;
}

}  // namespace stratagem

/// Declares functions that return a T, in the namespace around it, and defines `table()`, a list of
/// what they return.
#define STRATAGEM_TABLE(table, T, ...)                                                  \
  RowFunction<T> __VA_ARGS__;                                                           \
  const std::vector<T>& table() {                                                       \
    static const std::vector<T> rows = ::stratagem::rows_returned_by<T>({__VA_ARGS__}); \
    return rows;                                                                        \
  }
