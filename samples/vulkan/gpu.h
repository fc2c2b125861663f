/// This is a small Vulkan harness for samples, tests and benchmarks: one device, one queue, host-visible
/// buffers, images, pipelines. Every Vulkan error ends the program at once with a message.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samples/vulkan/features.h"

namespace harness {

struct Buffer {
  VkBuffer handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize size = 0;
  void* mapped = nullptr;

  template <typename T>
  std::span<T> as() const {
    return {static_cast<T*>(mapped), size / sizeof(T)};
  }
};

struct Image {
  VkImage handle = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkImageView view = VK_NULL_HANDLE;
  VkFormat format = VK_FORMAT_UNDEFINED;
  VkImageAspectFlags aspect = 0;
  uint32_t width = 0, height = 0, depth = 1, levels = 1, layers = 1;
  VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT;
};

struct ImageOptions {
  VkImageUsageFlags usage = 0;
  uint32_t levels = 1, layers = 1;
  VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT;
  uint32_t depth = 1;    ///< more: the image is 3D
  bool is_cube = false;  ///< its view, of six layers
};

struct VertexAttribute {
  VkFormat format;
  uint32_t offset;
  bool per_instance = false;  ///< taken from binding 1
};

/// What a graphics pipeline needs beyond the defaults (triangle list, no blending, no depth, viewport =
/// target).
struct PipelineOptions {
  std::span<const uint32_t> vertex, fragment;  ///< SPIR-V; no fragment shader when that is empty
  uint32_t stride = 0, instance_stride = 0;
  std::vector<VertexAttribute> attributes;
  VkPrimitiveTopology topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;
  bool depth_test = false;
  VkCullModeFlags cull = VK_CULL_MODE_NONE;  ///< the front is counter-clockwise
  float depth_bias = 0, depth_bias_slope = 0;
  VkPipelineColorBlendAttachmentState blend{};  ///< colorWriteMask 0 means RGBA
  uint32_t push_constant_bytes = 0;
  std::vector<VkDescriptorType> descriptors;  ///< binding i
};

struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineBindPoint bind_point = VK_PIPELINE_BIND_POINT_GRAPHICS;
};

/// One descriptor: a buffer, or an image with a sampler. Without either it is a null descriptor.
struct Binding {
  VkDescriptorType type;
  const Buffer* buffer = nullptr;
  VkImageView view = VK_NULL_HANDLE;
  VkSampler sampler = VK_NULL_HANDLE;
};

/// Colour and depth attachments, or depth alone, with the framebuffer made for them.
struct Target {
  VkRenderPass pass = VK_NULL_HANDLE;
  VkFramebuffer framebuffer = VK_NULL_HANDLE;
  uint32_t width = 0, height = 0, layers = 1;
  VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT;
  uint32_t colors = 1;  ///< colour attachments; they come first
  bool has_depth = false, resolves = false;
};

class Gpu {
 public:
  /// The first device. Ends the program unless its name begins with $HARNESS_DEVICE.
  /// @param wanted  enabled where the device has them; missing() tells the others
  explicit Gpu(std::initializer_list<Feature> wanted = {});
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  VkInstance instance() const { return instance_; }
  VkPhysicalDevice physical() const { return physical_; }
  VkDevice device() const { return device_; }
  VkQueue queue() const { return queue_; }
  const VkPhysicalDeviceProperties& properties() const { return properties_; }
  VkFormatFeatureFlags features(VkFormat format) const;
  bool has_performance_query() const {
    return enabled_->has(feature::kPerformanceQuery);
  }  ///< and it is enabled
  const std::string& missing() const {
    return missing_;
  }  ///< wanted features that the device lacks: their names
  VkPhysicalDeviceSubgroupProperties subgroup_properties() const;
  float timestamp_period() const { return properties_.limits.timestampPeriod; }

  Buffer buffer(VkDeviceSize size, VkBufferUsageFlags usage);
  Image image(uint32_t width, uint32_t height, VkFormat format, const ImageOptions& options);
  VkSampler sampler(VkFilter filter, VkSamplerAddressMode mode,
                    VkSamplerMipmapMode mip = VK_SAMPLER_MIPMAP_MODE_NEAREST);
  VkSampler sampler(const VkSamplerCreateInfo& info);

  /// All layers of `color` are attached, and depth must have as many.
  /// @param resolve  single-sampled image that receives the resolved colour
  Target target(const Image& color, const Image* depth = nullptr, const Image* resolve = nullptr);
  /// Several colour images of one size, all cleared and stored.
  Target target(std::span<const Image> colors);
  /// Depth alone; the image can be sampled after the pass (SHADER_READ_ONLY_OPTIMAL).
  Target depth_target(const Image& depth);
  Pipeline graphics(const Target& target, const PipelineOptions& options);
  Pipeline compute(std::span<const uint32_t> code, const std::vector<VkDescriptorType>& descriptors,
                   uint32_t push_constant_bytes = 0);
  VkDescriptorSet descriptors(const Pipeline& pipeline, const std::vector<Binding>& bindings);

  /// Records, submits and waits.
  void run(const std::function<void(VkCommandBuffer)>& record);
  /// One command: texels of a level into the image, which ends in `layout`.
  void upload(const Image& image, const void* texels, size_t bytes, VkImageLayout layout, uint32_t level = 0);
  /// Texels of a level, tightly packed; the image must be in TRANSFER_SRC_OPTIMAL.
  std::vector<uint8_t> download(const Image& image, size_t texel_bytes, uint32_t level = 0,
                                uint32_t layer = 0);

 private:
  VkDeviceMemory allocate(const VkMemoryRequirements& requirements, VkMemoryPropertyFlags flags);
  Pipeline layout(const std::vector<VkDescriptorType>& types, VkShaderStageFlags stages, uint32_t push_bytes);
  void make_target(Target* target, std::span<const VkAttachmentDescription> attachments,
                   std::span<const VkImageView> views, const VkSubpassDescription& subpass);
  VkShaderModule module(std::span<const uint32_t> code);

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties_{};
  VkPhysicalDeviceMemoryProperties memory_{};
  std::unique_ptr<EnabledFeatures> enabled_;
  std::string missing_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<std::function<void()>> cleanup_;  // run last to first
};

/// A full barrier with a layout transition of some levels, all by default, in all layers.
void transition(VkCommandBuffer commands, const Image& image, VkImageLayout from, VkImageLayout to,
                uint32_t first_level = 0, uint32_t levels = VK_REMAINING_MIP_LEVELS);
/// Everything before is visible to everything after.
void full_barrier(VkCommandBuffer commands);
void begin_pass(VkCommandBuffer commands, const Target& target, const float (&color)[4], float depth = 1.0f);
void bind(VkCommandBuffer commands, const Pipeline& pipeline, VkDescriptorSet set = VK_NULL_HANDLE);

/// Ends the program with the expression's text unless it is VK_SUCCESS.
#define VULKAN_CHECK(expression) ::harness::check((expression), #expression, __FILE__, __LINE__)
void check(VkResult result, const char* text, const char* file, int line);

}  // namespace harness
