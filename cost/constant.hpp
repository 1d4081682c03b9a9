// A constant of a cost model: its value and how it is known.
#pragma once

#include <array>
#include <string>

#include "base/json_reader.hpp"
#include "base/json_writer.hpp"
#include "base/quantity.hpp"

namespace stratagem::cost {

/// How a constant is known, strongest first. Reports show the weakest provenance that a prediction
/// used.
enum class Provenance { measured, published, fitted, datasheet, assumed };
inline constexpr std::array provenances{Provenance::measured, Provenance::published,
                                        Provenance::fitted, Provenance::datasheet,
                                        Provenance::assumed};
std::string to_text(Provenance);
/// Throws InputError for any other word.
Provenance read_provenance(const JsonReader& json);

/// A value with its provenance. `source` is the citation or the fit's input; `error` is the fit's
/// cross-validated median relative error, 0 where nothing was fitted.
template <typename T>
struct Constant {
  T value{};
  Provenance provenance = Provenance::assumed;
  std::string source;
  double error = 0;
};

/// One constant, `{"value": "900 GB/s", "provenance": "datasheet", "source": "..."}`, with "error"
/// where it was fitted. A constant without dimension is a number.
template <typename T>
Constant<T> read_constant(const JsonReader&);
template <typename T>
Json to_json(const Constant<T>&);

/// The same, within bounds: more than 0 and at most 1; more than 0; at least 0.
Constant<double> read_share(const JsonReader& json);
template <typename T>
Constant<T> read_positive(const JsonReader& json);
template <typename T>
Constant<T> read_not_negative(const JsonReader& json);

/// The shortest text that reads back the same, up to the rounding of one multiplication; times in
/// the unit that people use for them.
template <typename Q>
std::string exact_text(Q quantity);

}  // namespace stratagem::cost
