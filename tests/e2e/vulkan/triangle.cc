/// Draws one triangle and saves the picture: triangle FILE.ppm [bgra]. With bgra the image has blue in its
/// first byte. Deterministic, for tests/e2e/capture_test.py.
#include <cstdio>
#include <cstring>
#include <utility>

#include "samples/vulkan/gpu.h"
#include "shaders.h"

int main(int argc, char** argv) {
  using namespace harness;
  const bool bgra = argc == 3 && std::strcmp(argv[2], "bgra") == 0;
  if (argc != 2 && !bgra) return 2;
  constexpr uint32_t kWidth = 96, kHeight = 80;
  Gpu gpu;
  const Image image = gpu.image(kWidth, kHeight, bgra ? VK_FORMAT_B8G8R8A8_UNORM : VK_FORMAT_R8G8B8A8_UNORM,
                                {.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT});
  const Target target = gpu.target(image);
  const float vertices[3][8] = {
      {-0.8f, -0.7f, 0, 1, 1, 0, 0, 1}, {0.9f, -0.3f, 0, 1, 0, 1, 0, 1}, {-0.1f, 0.8f, 0, 1, 0, 0, 1, 1}};
  PipelineOptions options;
  options.vertex = kFlatVert;
  options.fragment = kFlatFrag;
  options.stride = sizeof vertices[0];
  options.attributes = {{VK_FORMAT_R32G32B32A32_SFLOAT, 0}, {VK_FORMAT_R32G32B32A32_SFLOAT, 16}};
  const Pipeline pipeline = gpu.graphics(target, options);
  const Buffer buffer = gpu.buffer(sizeof vertices, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT);
  std::memcpy(buffer.mapped, vertices, sizeof vertices);
  gpu.run([&](VkCommandBuffer c) {
    const VkDeviceSize zero = 0;
    begin_pass(c, target, {0.25f, 0.5f, 0.75f, 1.0f});
    bind(c, pipeline);
    vkCmdBindVertexBuffers(c, 0, 1, &buffer.handle, &zero);
    vkCmdDraw(c, 3, 1, 0, 0);
    vkCmdEndRenderPass(c);
  });
  std::vector<uint8_t> texels = gpu.download(image, 4);
  for (size_t i = 0; bgra && i < texels.size(); i += 4) std::swap(texels[i], texels[i + 2]);
  std::FILE* file = std::fopen(argv[1], "wb");
  if (file == nullptr) return 1;
  std::fprintf(file, "P6 %u %u 255\n", kWidth, kHeight);
  for (size_t i = 0; i < texels.size(); i += 4) std::fwrite(&texels[i], 1, 3, file);
  return std::fclose(file) == 0 ? 0 : 1;
}
