// Images in and classes out: what classifiers of images have in common.
#pragma once

#include <cstdint>
#include <string>

#include "base/options.hpp"
#include "model/builder.hpp"

namespace stratagem::model {

/// Square images of `size` x `size` pixels, cut into square patches, and told apart by classes.
struct Images {
  std::int64_t size = 224;
  std::int64_t channels = 3;
  std::int64_t patch = 16;
  std::int64_t classes = 1000;

  /// Patches in a row of an image, and in an image.
  [[nodiscard]] std::int64_t across() const { return size / patch; }
  [[nodiscard]] std::int64_t patches() const { return across() * across(); }
  friend bool operator==(const Images&, const Images&) = default;
};

/// (batch, patches, hidden): the product of every patch's pixels with a matrix, and a bias. Images
/// come as patches (batch, patches, channels * patch^2), so a convolution's rearrangement of pixels
/// is not counted.
TensorId patches_of(Builder& build, const Images& images, std::int64_t batch, std::int64_t hidden,
                    DataType type);

/// The loss of a linear layer on `x` (batch, width): cross-entropy over the classes.
TensorId loss_of_classes(Builder& build, const Images& images, TensorId x);

/// The keys of a configuration's `images`.
template <typename Config>
OptionList<Config> with_images(const OptionList<Config>& more) {
  const auto of = [](auto Images::*member) { return within(&Config::images, member); };
  OptionList<Config> all = {
      {"image", of(&Images::size), whole(1, 100'000), "rows of pixels, and as many columns",
       must_be_there},
      {"patch", of(&Images::patch), whole(1, 100'000),
       "rows of a patch, and columns; divides `image`"},
      {"channels", of(&Images::channels), whole(1, 10'000), "numbers of a pixel"},
      {"classes", of(&Images::classes), whole(2, 10'000'000), "that images are told apart by"}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Refuses patches that do not divide the image.
void check_images(const JsonReader& config, const Images& images);

}  // namespace stratagem::model
