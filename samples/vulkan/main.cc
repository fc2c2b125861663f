/// Pictures drawn off-screen with Vulkan: vulkan_samples --scene shadow --output shadow.ppm
#include "samples/common/pictures.h"

int main(int argc, char** argv) {
  return samples::run_program({argv, static_cast<size_t>(argc)}, samples::kPictures);
}
