#include "samples/common/program.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace samples {
namespace {

struct Options {
  std::string scene, output;
  Size size;
  bool list = false;
};

bool parse(std::span<char*> arguments, Options* options) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string name = arguments[i];
    if (name == "--list") {
      options->list = true;
      return true;
    }
    if (++i == arguments.size()) return false;
    if (name == "--scene") {
      options->scene = arguments[i];
    } else if (name == "--output") {
      options->output = arguments[i];
    } else if (name == "--size") {
      Size& size = options->size;
      char rest = 0;
      if (std::sscanf(arguments[i], "%ux%u%c", &size.width, &size.height, &rest) != 2) return false;
      if (size.width - 1 >= 4096 || size.height - 1 >= 4096) return false;
    } else {
      return false;
    }
  }
  return !options->scene.empty() && !options->output.empty();
}

bool write_ppm(const std::string& path, Size size, const Pixels& pixels) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (!file) return false;
  std::fprintf(file, "P6\n%u %u\n255\n", size.width, size.height);
  for (size_t i = 0; i < pixels.size(); i += 4) std::fwrite(&pixels[i], 1, 3, file);
  const bool written = !std::ferror(file);
  return std::fclose(file) == 0 && written;
}

}  // namespace

int run_program(std::span<char*> arguments, std::span<const NamedScene> scenes) {
  Options options;
  if (!parse(arguments, &options)) {
    std::fprintf(stderr, "usage: %s --scene NAME --output FILE.ppm [--size WIDTHxHEIGHT] | --list\n",
                 arguments[0]);
    return 2;
  }
  if (options.list) {
    for (const NamedScene& scene : scenes) std::puts(scene.name);
    return 0;
  }
  const auto scene = std::ranges::find(scenes, options.scene, &NamedScene::name);
  if (scene == scenes.end()) {
    std::fprintf(stderr, "no scene %s; --list names them\n", options.scene.c_str());
    return 2;
  }
  if (!write_ppm(options.output, options.size, scene->draw(options.size))) {
    std::perror(options.output.c_str());
    return 1;
  }
  return 0;
}

}  // namespace samples
