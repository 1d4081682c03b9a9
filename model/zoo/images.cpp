// Builds the first and the last layer of a classifier of images.
#include "model/zoo/images.hpp"

#include "model/zoo/cross_entropy.hpp"
#include "model/zoo/mlp.hpp"

namespace stratagem::model {

TensorId patches_of(Builder& build, const Images& images, std::int64_t batch, std::int64_t hidden,
                    DataType type) {
  const std::int64_t pixels = images.channels * images.patch * images.patch;
  const TensorId image =
      build.tensor("image", {batch, images.patches(), pixels}, type, Role::input);
  return linear(build, tokens(batch, images.patches()), "patches", image, hidden, Bias::added);
}

TensorId loss_of_classes(Builder& build, const Images& images, TensorId x) {
  const Rows samples{.dims = "b", .shape = {build[x].shape.front()}};
  const TensorId classes = linear(build, samples, "classes", x, images.classes, Bias::added);
  return cross_entropy(build, classes, "b", "classes");
}

void check_images(const JsonReader& config, const Images& images) {
  if (images.size % images.patch != 0)
    config.at(config.has("patch") ? "patch" : "image")
        .fail("patches of " + std::to_string(images.patch) + " rows that divide the image's " +
              std::to_string(images.size));
}

}  // namespace stratagem::model
