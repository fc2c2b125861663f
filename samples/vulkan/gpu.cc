#include "samples/vulkan/gpu.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace harness {

void check(VkResult result, const char* text, const char* file, int line) {
  if (result == VK_SUCCESS) return;
  std::fprintf(stderr, "%s:%d: %s gave VkResult %d\n", file, line, text, result);
  std::exit(1);
}

Gpu::Gpu(std::initializer_list<Feature> wanted) {
  VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                .pApplicationName = "v3demu samples",
                                .apiVersion = VK_API_VERSION_1_1};
  VkInstanceCreateInfo instance{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                .pApplicationInfo = &application};
  VULKAN_CHECK(vkCreateInstance(&instance, nullptr, &instance_));
  uint32_t count = 1;
  const VkResult found = vkEnumeratePhysicalDevices(instance_, &count, &physical_);
  if (count == 0 || (found != VK_SUCCESS && found != VK_INCOMPLETE)) {
    std::fprintf(stderr, "no Vulkan device\n");
    std::exit(1);
  }
  vkGetPhysicalDeviceProperties(physical_, &properties_);
  const char* const wanted_device = std::getenv("HARNESS_DEVICE");
  if (wanted_device && std::strncmp(properties_.deviceName, wanted_device, std::strlen(wanted_device)) != 0) {
    std::fprintf(stderr, "the device is %s, not %s\n", properties_.deviceName, wanted_device);
    std::exit(1);
  }
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory_);

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                .queueFamilyIndex = 0,
                                .queueCount = 1,
                                .pQueuePriorities = &priority};
  std::vector<Feature> features(wanted);
  features.insert(features.end(),
                  {feature::kPreciseOcclusion, feature::kAnisotropy, feature::kPerformanceQuery});
  enabled_ = std::make_unique<EnabledFeatures>(physical_, features);
  for (const Feature& f : wanted)
    if (!enabled_->has(f)) missing_ += (missing_.empty() ? "" : ", ") + std::string(f.name);
  VkDeviceCreateInfo device{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                            .pNext = enabled_->chain(),
                            .queueCreateInfoCount = 1,
                            .pQueueCreateInfos = &queue,
                            .enabledExtensionCount = static_cast<uint32_t>(enabled_->extensions().size()),
                            .ppEnabledExtensionNames = enabled_->extensions().data()};
  VULKAN_CHECK(vkCreateDevice(physical_, &device, nullptr, &device_));
  vkGetDeviceQueue(device_, 0, 0, &queue_);
  VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  VULKAN_CHECK(vkCreateCommandPool(device_, &pool, nullptr, &pool_));
}

Gpu::~Gpu() {
  vkDeviceWaitIdle(device_);
  for (auto i = cleanup_.rbegin(); i != cleanup_.rend(); ++i) (*i)();
  vkDestroyCommandPool(device_, pool_, nullptr);
  vkDestroyDevice(device_, nullptr);
  vkDestroyInstance(instance_, nullptr);
}

VkFormatFeatureFlags Gpu::features(VkFormat format) const {
  VkFormatProperties properties{};
  vkGetPhysicalDeviceFormatProperties(physical_, format, &properties);
  return properties.optimalTilingFeatures;
}

VkPhysicalDeviceSubgroupProperties Gpu::subgroup_properties() const {
  VkPhysicalDeviceSubgroupProperties subgroup{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                         .pNext = &subgroup};
  vkGetPhysicalDeviceProperties2(physical_, &properties);
  return subgroup;
}

VkDeviceMemory Gpu::allocate(const VkMemoryRequirements& requirements, VkMemoryPropertyFlags flags) {
  for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
    if (!(requirements.memoryTypeBits & (1u << i)) || (memory_.memoryTypes[i].propertyFlags & flags) != flags)
      continue;
    VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                              .allocationSize = requirements.size,
                              .memoryTypeIndex = i};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VULKAN_CHECK(vkAllocateMemory(device_, &info, nullptr, &memory));
    cleanup_.push_back([this, memory] { vkFreeMemory(device_, memory, nullptr); });
    return memory;
  }
  std::fprintf(stderr, "no memory type with flags %#x\n", flags);
  std::exit(1);
}

Buffer Gpu::buffer(VkDeviceSize size, VkBufferUsageFlags usage) {
  Buffer b;
  b.size = size;
  VkBufferCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = size,
      .usage = usage | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
  VULKAN_CHECK(vkCreateBuffer(device_, &info, nullptr, &b.handle));
  VkMemoryRequirements requirements{};
  vkGetBufferMemoryRequirements(device_, b.handle, &requirements);
  b.memory =
      allocate(requirements, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  VULKAN_CHECK(vkBindBufferMemory(device_, b.handle, b.memory, 0));
  VULKAN_CHECK(vkMapMemory(device_, b.memory, 0, VK_WHOLE_SIZE, 0, &b.mapped));
  cleanup_.push_back([this, h = b.handle] { vkDestroyBuffer(device_, h, nullptr); });
  return b;
}

namespace {

VkImageAspectFlags aspect_of(VkFormat format) {
  switch (format) {
    case VK_FORMAT_D16_UNORM:
    case VK_FORMAT_X8_D24_UNORM_PACK32:
    case VK_FORMAT_D32_SFLOAT:
      return VK_IMAGE_ASPECT_DEPTH_BIT;
    case VK_FORMAT_D24_UNORM_S8_UINT:
      return VK_IMAGE_ASPECT_DEPTH_BIT | VK_IMAGE_ASPECT_STENCIL_BIT;
    default:
      return VK_IMAGE_ASPECT_COLOR_BIT;
  }
}

}  // namespace

Image Gpu::image(uint32_t width, uint32_t height, VkFormat format, const ImageOptions& options) {
  Image image;
  image.format = format;
  image.aspect = aspect_of(format);
  image.width = width;
  image.height = height;
  image.levels = options.levels;
  image.depth = options.depth;
  image.layers = options.layers;
  image.samples = options.samples;
  VkImageCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
      .flags = options.is_cube ? VkImageCreateFlags{VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT} : 0u,
      .imageType = options.depth > 1 ? VK_IMAGE_TYPE_3D : VK_IMAGE_TYPE_2D,
      .format = format,
      .extent = {width, height, options.depth},
      .mipLevels = options.levels,
      .arrayLayers = options.layers,
      .samples = options.samples,
      .tiling = VK_IMAGE_TILING_OPTIMAL,
      .usage = options.usage | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
  VULKAN_CHECK(vkCreateImage(device_, &info, nullptr, &image.handle));
  VkMemoryRequirements requirements{};
  vkGetImageMemoryRequirements(device_, image.handle, &requirements);
  image.memory = allocate(requirements, 0);
  VULKAN_CHECK(vkBindImageMemory(device_, image.handle, image.memory, 0));
  cleanup_.push_back([this, h = image.handle] { vkDestroyImage(device_, h, nullptr); });

  constexpr VkImageUsageFlags kViewed = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_STORAGE_BIT |
                                        VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT |
                                        VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
  if (options.usage & kViewed) {
    VkImageViewCreateInfo view{.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                               .image = image.handle,
                               .viewType = options.is_cube      ? VK_IMAGE_VIEW_TYPE_CUBE
                                           : options.depth > 1  ? VK_IMAGE_VIEW_TYPE_3D
                                           : options.layers > 1 ? VK_IMAGE_VIEW_TYPE_2D_ARRAY
                                                                : VK_IMAGE_VIEW_TYPE_2D,
                               .format = format,
                               .subresourceRange = {image.aspect, 0, options.levels, 0, options.layers}};
    VULKAN_CHECK(vkCreateImageView(device_, &view, nullptr, &image.view));
    cleanup_.push_back([this, v = image.view] { vkDestroyImageView(device_, v, nullptr); });
  }
  return image;
}

VkSampler Gpu::sampler(VkFilter filter, VkSamplerAddressMode mode, VkSamplerMipmapMode mip) {
  VkSamplerCreateInfo info{.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                           .magFilter = filter,
                           .minFilter = filter,
                           .mipmapMode = mip,
                           .addressModeU = mode,
                           .addressModeV = mode,
                           .addressModeW = mode,
                           .maxLod = VK_LOD_CLAMP_NONE};
  return sampler(info);
}

VkSampler Gpu::sampler(const VkSamplerCreateInfo& info) {
  VkSampler sampler = VK_NULL_HANDLE;
  VULKAN_CHECK(vkCreateSampler(device_, &info, nullptr, &sampler));
  cleanup_.push_back([this, sampler] { vkDestroySampler(device_, sampler, nullptr); });
  return sampler;
}

Target Gpu::target(const Image& color, const Image* depth, const Image* resolve) {
  Target t;
  t.width = color.width;
  t.height = color.height;
  t.layers = color.layers;
  t.samples = color.samples;
  t.has_depth = depth != nullptr;
  t.resolves = resolve != nullptr;
  std::vector<VkAttachmentDescription> attachments;
  std::vector<VkImageView> views;
  const auto attach = [&](const Image& image, VkAttachmentLoadOp load, VkImageLayout final_layout) {
    attachments.push_back({.format = image.format,
                           .samples = image.samples,
                           .loadOp = load,
                           .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
                           .stencilLoadOp = load,
                           .stencilStoreOp = VK_ATTACHMENT_STORE_OP_STORE,
                           .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
                           .finalLayout = final_layout});
    views.push_back(image.view);
    return static_cast<uint32_t>(views.size() - 1);
  };
  VkAttachmentReference color_ref{
      attach(color, VK_ATTACHMENT_LOAD_OP_CLEAR, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL),
      VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  VkAttachmentReference depth_ref{}, resolve_ref{};
  if (depth)
    depth_ref = {attach(*depth, VK_ATTACHMENT_LOAD_OP_CLEAR, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL),
                 VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
  if (resolve)
    resolve_ref = {attach(*resolve, VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL),
                   VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  VkSubpassDescription subpass{.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS,
                               .colorAttachmentCount = 1,
                               .pColorAttachments = &color_ref,
                               .pResolveAttachments = resolve ? &resolve_ref : nullptr,
                               .pDepthStencilAttachment = depth ? &depth_ref : nullptr};
  make_target(&t, attachments, views, subpass);
  return t;
}

Target Gpu::target(std::span<const Image> colors) {
  Target t;
  t.width = colors.front().width;
  t.height = colors.front().height;
  t.colors = static_cast<uint32_t>(colors.size());
  std::vector<VkAttachmentDescription> attachments;
  std::vector<VkAttachmentReference> references;
  std::vector<VkImageView> views;
  for (const Image& image : colors) {
    references.push_back({static_cast<uint32_t>(views.size()), VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL});
    views.push_back(image.view);
    attachments.push_back({.format = image.format,
                           .samples = VK_SAMPLE_COUNT_1_BIT,
                           .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
                           .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
                           .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
                           .finalLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL});
  }
  make_target(&t, attachments, views,
              {.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS,
               .colorAttachmentCount = t.colors,
               .pColorAttachments = references.data()});
  return t;
}

Target Gpu::depth_target(const Image& depth) {
  Target t;
  t.width = depth.width;
  t.height = depth.height;
  t.samples = depth.samples;
  t.colors = 0;
  t.has_depth = true;
  const VkAttachmentDescription attachment{.format = depth.format,
                                           .samples = depth.samples,
                                           .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
                                           .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
                                           .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
                                           .finalLayout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
  const VkAttachmentReference reference{0, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
  make_target(&t, {&attachment, 1}, {&depth.view, 1},
              {.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS, .pDepthStencilAttachment = &reference});
  return t;
}

void Gpu::make_target(Target* target, std::span<const VkAttachmentDescription> attachments,
                      std::span<const VkImageView> views, const VkSubpassDescription& subpass) {
  VkRenderPassCreateInfo pass{.sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO,
                              .attachmentCount = static_cast<uint32_t>(attachments.size()),
                              .pAttachments = attachments.data(),
                              .subpassCount = 1,
                              .pSubpasses = &subpass};
  VULKAN_CHECK(vkCreateRenderPass(device_, &pass, nullptr, &target->pass));
  VkFramebufferCreateInfo framebuffer{.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO,
                                      .renderPass = target->pass,
                                      .attachmentCount = static_cast<uint32_t>(views.size()),
                                      .pAttachments = views.data(),
                                      .width = target->width,
                                      .height = target->height,
                                      .layers = target->layers};
  VULKAN_CHECK(vkCreateFramebuffer(device_, &framebuffer, nullptr, &target->framebuffer));
  cleanup_.push_back([this, t = *target] {
    vkDestroyFramebuffer(device_, t.framebuffer, nullptr);
    vkDestroyRenderPass(device_, t.pass, nullptr);
  });
}

VkShaderModule Gpu::module(std::span<const uint32_t> code) {
  VkShaderModuleCreateInfo info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                .codeSize = code.size_bytes(),
                                .pCode = code.data()};
  VkShaderModule m = VK_NULL_HANDLE;
  VULKAN_CHECK(vkCreateShaderModule(device_, &info, nullptr, &m));
  cleanup_.push_back([this, m] { vkDestroyShaderModule(device_, m, nullptr); });
  return m;
}

Pipeline Gpu::layout(const std::vector<VkDescriptorType>& types, VkShaderStageFlags stages,
                     uint32_t push_bytes) {
  Pipeline p;
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (size_t i = 0; i < types.size(); ++i)
    bindings.push_back({static_cast<uint32_t>(i), types[i], 1, stages, nullptr});
  VkDescriptorSetLayoutCreateInfo set{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                      .bindingCount = static_cast<uint32_t>(bindings.size()),
                                      .pBindings = bindings.data()};
  VULKAN_CHECK(vkCreateDescriptorSetLayout(device_, &set, nullptr, &p.set_layout));
  VkPushConstantRange range{stages, 0, push_bytes};
  VkPipelineLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                  .setLayoutCount = 1,
                                  .pSetLayouts = &p.set_layout,
                                  .pushConstantRangeCount = push_bytes ? 1u : 0u,
                                  .pPushConstantRanges = &range};
  VULKAN_CHECK(vkCreatePipelineLayout(device_, &info, nullptr, &p.layout));
  cleanup_.push_back([this, p] {
    vkDestroyPipelineLayout(device_, p.layout, nullptr);
    vkDestroyDescriptorSetLayout(device_, p.set_layout, nullptr);
  });
  return p;
}

Pipeline Gpu::graphics(const Target& target, const PipelineOptions& options) {
  constexpr VkShaderStageFlags kStages = VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT;
  Pipeline p = layout(options.descriptors, kStages, options.push_constant_bytes);
  std::vector<VkPipelineShaderStageCreateInfo> stages;
  stages.push_back({.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                    .stage = VK_SHADER_STAGE_VERTEX_BIT,
                    .module = module(options.vertex),
                    .pName = "main"});
  if (!options.fragment.empty())
    stages.push_back({.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .stage = VK_SHADER_STAGE_FRAGMENT_BIT,
                      .module = module(options.fragment),
                      .pName = "main"});
  std::vector<VkVertexInputBindingDescription> bindings;
  if (options.stride) bindings.push_back({0, options.stride, VK_VERTEX_INPUT_RATE_VERTEX});
  if (options.instance_stride)
    bindings.push_back({1, options.instance_stride, VK_VERTEX_INPUT_RATE_INSTANCE});
  std::vector<VkVertexInputAttributeDescription> attributes;
  for (const VertexAttribute& a : options.attributes)
    attributes.push_back(
        {static_cast<uint32_t>(attributes.size()), a.per_instance ? 1u : 0u, a.format, a.offset});
  VkPipelineVertexInputStateCreateInfo input{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO,
      .vertexBindingDescriptionCount = static_cast<uint32_t>(bindings.size()),
      .pVertexBindingDescriptions = bindings.data(),
      .vertexAttributeDescriptionCount = static_cast<uint32_t>(attributes.size()),
      .pVertexAttributeDescriptions = attributes.data()};
  VkPipelineInputAssemblyStateCreateInfo assembly{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO, .topology = options.topology};
  VkViewport viewport{0, 0, static_cast<float>(target.width), static_cast<float>(target.height), 0, 1};
  VkRect2D scissor{{0, 0}, {target.width, target.height}};
  VkPipelineViewportStateCreateInfo view{.sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO,
                                         .viewportCount = 1,
                                         .pViewports = &viewport,
                                         .scissorCount = 1,
                                         .pScissors = &scissor};
  VkPipelineRasterizationStateCreateInfo raster{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO,
      .polygonMode = VK_POLYGON_MODE_FILL,
      .cullMode = options.cull,
      .frontFace = VK_FRONT_FACE_COUNTER_CLOCKWISE,
      .depthBiasEnable = options.depth_bias != 0 || options.depth_bias_slope != 0,
      .depthBiasConstantFactor = options.depth_bias,
      .depthBiasSlopeFactor = options.depth_bias_slope,
      .lineWidth = 1.0f};
  VkPipelineMultisampleStateCreateInfo multisample{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO,
      .rasterizationSamples = target.samples};
  VkPipelineDepthStencilStateCreateInfo depth{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO,
      .depthTestEnable = options.depth_test,
      .depthWriteEnable = options.depth_test,
      .depthCompareOp = VK_COMPARE_OP_LESS};
  VkPipelineColorBlendAttachmentState attachment = options.blend;
  if (!attachment.colorWriteMask) attachment.colorWriteMask = 0xf;
  const std::vector<VkPipelineColorBlendAttachmentState> blends(target.colors, attachment);
  VkPipelineColorBlendStateCreateInfo blend{.sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO,
                                            .attachmentCount = target.colors,
                                            .pAttachments = blends.data()};
  VkGraphicsPipelineCreateInfo info{.sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
                                    .stageCount = static_cast<uint32_t>(stages.size()),
                                    .pStages = stages.data(),
                                    .pVertexInputState = &input,
                                    .pInputAssemblyState = &assembly,
                                    .pViewportState = &view,
                                    .pRasterizationState = &raster,
                                    .pMultisampleState = &multisample,
                                    .pDepthStencilState = target.has_depth ? &depth : nullptr,
                                    .pColorBlendState = target.colors ? &blend : nullptr,
                                    .layout = p.layout,
                                    .renderPass = target.pass};
  VULKAN_CHECK(vkCreateGraphicsPipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &p.handle));
  cleanup_.push_back([this, h = p.handle] { vkDestroyPipeline(device_, h, nullptr); });
  return p;
}

Pipeline Gpu::compute(std::span<const uint32_t> code, const std::vector<VkDescriptorType>& types,
                      uint32_t push_bytes) {
  Pipeline p = layout(types, VK_SHADER_STAGE_COMPUTE_BIT, push_bytes);
  p.bind_point = VK_PIPELINE_BIND_POINT_COMPUTE;
  VkComputePipelineCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                   .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                             .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                             .module = module(code),
                                             .pName = "main"},
                                   .layout = p.layout};
  VULKAN_CHECK(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &p.handle));
  cleanup_.push_back([this, h = p.handle] { vkDestroyPipeline(device_, h, nullptr); });
  return p;
}

VkDescriptorSet Gpu::descriptors(const Pipeline& pipeline, const std::vector<Binding>& bindings) {
  std::vector<VkDescriptorPoolSize> sizes;
  sizes.reserve(bindings.size());
  for (const Binding& b : bindings) sizes.push_back({b.type, 1});
  VkDescriptorPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                  .maxSets = 1,
                                  .poolSizeCount = static_cast<uint32_t>(sizes.size()),
                                  .pPoolSizes = sizes.data()};
  VkDescriptorPool pool = VK_NULL_HANDLE;
  VULKAN_CHECK(vkCreateDescriptorPool(device_, &info, nullptr, &pool));
  cleanup_.push_back([this, pool] { vkDestroyDescriptorPool(device_, pool, nullptr); });
  VkDescriptorSetAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                       .descriptorPool = pool,
                                       .descriptorSetCount = 1,
                                       .pSetLayouts = &pipeline.set_layout};
  VkDescriptorSet set = VK_NULL_HANDLE;
  VULKAN_CHECK(vkAllocateDescriptorSets(device_, &allocate, &set));
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Binding& b = bindings[i];
    VkDescriptorBufferInfo buffer{b.buffer ? b.buffer->handle : VK_NULL_HANDLE, 0, VK_WHOLE_SIZE};
    VkDescriptorImageInfo image{b.sampler, b.view,
                                b.type == VK_DESCRIPTOR_TYPE_STORAGE_IMAGE
                                    ? VK_IMAGE_LAYOUT_GENERAL
                                    : VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
    VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                               .dstSet = set,
                               .dstBinding = static_cast<uint32_t>(i),
                               .descriptorCount = 1,
                               .descriptorType = b.type,
                               .pImageInfo = &image,
                               .pBufferInfo = &buffer};
    vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
  }
  return set;
}

void Gpu::run(const std::function<void(VkCommandBuffer)>& record) {
  VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                       .commandPool = pool_,
                                       .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                       .commandBufferCount = 1};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VULKAN_CHECK(vkAllocateCommandBuffers(device_, &allocate, &commands));
  VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                 .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  VULKAN_CHECK(vkBeginCommandBuffer(commands, &begin));
  record(commands);
  full_barrier(commands);
  VULKAN_CHECK(vkEndCommandBuffer(commands));
  VkFenceCreateInfo fence_info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkFence fence = VK_NULL_HANDLE;
  VULKAN_CHECK(vkCreateFence(device_, &fence_info, nullptr, &fence));
  VkSubmitInfo submit{
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  VULKAN_CHECK(vkQueueSubmit(queue_, 1, &submit, fence));
  VULKAN_CHECK(vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX));
  vkDestroyFence(device_, fence, nullptr);
  vkFreeCommandBuffers(device_, pool_, 1, &commands);
}

void Gpu::upload(const Image& image, const void* texels, size_t bytes, VkImageLayout layout, uint32_t level) {
  const Buffer staging = buffer(bytes, 0);
  std::memcpy(staging.mapped, texels, bytes);
  run([&](VkCommandBuffer commands) {
    transition(commands, image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, level, 1);
    VkBufferImageCopy region{
        .imageSubresource = {image.aspect, level, 0, image.layers},
        .imageExtent = {std::max(1u, image.width >> level), std::max(1u, image.height >> level),
                        std::max(1u, image.depth >> level)}};
    vkCmdCopyBufferToImage(commands, staging.handle, image.handle, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1,
                           &region);
    transition(commands, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, layout, level, 1);
  });
}

std::vector<uint8_t> Gpu::download(const Image& image, size_t texel_bytes, uint32_t level, uint32_t layer) {
  const uint32_t width = std::max(1u, image.width >> level), height = std::max(1u, image.height >> level);
  const Buffer staging = buffer(texel_bytes * width * height, 0);
  run([&](VkCommandBuffer commands) {
    full_barrier(commands);
    VkBufferImageCopy region{
        .imageSubresource = {image.aspect & ~VK_IMAGE_ASPECT_STENCIL_BIT, level, layer, 1},
        .imageExtent = {width, height, 1}};
    if (!(image.aspect & VK_IMAGE_ASPECT_DEPTH_BIT)) region.imageSubresource.aspectMask = image.aspect;
    vkCmdCopyImageToBuffer(commands, image.handle, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, staging.handle, 1,
                           &region);
  });
  const auto bytes = staging.as<uint8_t>();
  return {bytes.begin(), bytes.end()};
}

void transition(VkCommandBuffer commands, const Image& image, VkImageLayout from, VkImageLayout to,
                uint32_t first_level, uint32_t levels) {
  VkImageMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
                               .oldLayout = from,
                               .newLayout = to,
                               .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                               .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                               .image = image.handle,
                               .subresourceRange = {image.aspect, first_level, levels, 0, image.layers}};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0,
                       nullptr, 0, nullptr, 1, &barrier);
}

void full_barrier(VkCommandBuffer commands) {
  VkMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                          .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_MEMORY_READ_BIT,
                          .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                       VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                       nullptr, 0, nullptr);
}

constexpr uint32_t kMaxAttachments = 9;  // eight colours and a depth; only one colour is ever resolved

void begin_pass(VkCommandBuffer commands, const Target& target, const float (&color)[4], float depth) {
  VkClearValue clears[kMaxAttachments]{};
  for (uint32_t i = 0; i < target.colors; ++i) std::memcpy(clears[i].color.float32, color, sizeof color);
  if (target.has_depth) clears[target.colors].depthStencil = {depth, 0};
  VkRenderPassBeginInfo begin{.sType = VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO,
                              .renderPass = target.pass,
                              .framebuffer = target.framebuffer,
                              .renderArea = {{0, 0}, {target.width, target.height}},
                              .clearValueCount = kMaxAttachments,
                              .pClearValues = clears};
  vkCmdBeginRenderPass(commands, &begin, VK_SUBPASS_CONTENTS_INLINE);
}

void bind(VkCommandBuffer commands, const Pipeline& pipeline, VkDescriptorSet set) {
  vkCmdBindPipeline(commands, pipeline.bind_point, pipeline.handle);
  if (set) vkCmdBindDescriptorSets(commands, pipeline.bind_point, pipeline.layout, 0, 1, &set, 0, nullptr);
}

}  // namespace harness
