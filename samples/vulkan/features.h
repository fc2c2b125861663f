/// Vulkan devices have these optional features, by the names that the specification gives them.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace harness {

/// One VkBool32 of a feature structure, and the extension that must be enabled with it.
struct Feature {
  const char* name;
  const char* extension;  ///< nullptr: of the core, or of Vulkan 1.1, which the harness asks for
  VkStructureType structure;
  size_t offset;  ///< of the VkBool32, bytes
};

/// Structures that Debian 12's headers lack. Their numbers are those of the registry (vk.xml): 1000000000 +
/// 1000 * (extension - 1).
struct OneFeature {
  VkStructureType sType;
  void* pNext;
  VkBool32 value[2];
};
constexpr auto kMaximalReconvergenceFeatures = static_cast<VkStructureType>(1000434000);
constexpr auto kSubgroupRotateFeatures = static_cast<VkStructureType>(1000416000);
constexpr auto kQuadControlFeatures = static_cast<VkStructureType>(1000235000);

namespace feature {

// NAME is a member of its structure.
#define V3DEMU_FEATURE(name, extension, type, structure) \
  { #name, extension, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type, offsetof(VkPhysicalDevice##structure, name) }
#define V3DEMU_CORE_FEATURE(name)                                 \
  {                                                               \
#name, nullptr, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, \
        offsetof(VkPhysicalDeviceFeatures2, features.name)        \
  }
inline constexpr Feature kInt16 = V3DEMU_CORE_FEATURE(shaderInt16);
inline constexpr Feature kDualSource = V3DEMU_CORE_FEATURE(dualSrcBlend);
inline constexpr Feature kIndependentBlend = V3DEMU_CORE_FEATURE(independentBlend);
inline constexpr Feature kPreciseOcclusion = V3DEMU_CORE_FEATURE(occlusionQueryPrecise);
inline constexpr Feature kSampleShading = V3DEMU_CORE_FEATURE(sampleRateShading);
inline constexpr Feature kAnisotropy = V3DEMU_CORE_FEATURE(samplerAnisotropy);

inline constexpr Feature kFloat16 = V3DEMU_FEATURE(shaderFloat16, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                                                   SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features);
inline constexpr Feature kInt8 = V3DEMU_FEATURE(shaderInt8, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                                                SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features);
inline constexpr Feature kStorage16 =
    V3DEMU_FEATURE(storageBuffer16BitAccess, nullptr, 16BIT_STORAGE_FEATURES, 16BitStorageFeatures);
inline constexpr Feature kStorage8 = V3DEMU_FEATURE(
    storageBuffer8BitAccess, VK_KHR_8BIT_STORAGE_EXTENSION_NAME, 8BIT_STORAGE_FEATURES, 8BitStorageFeatures);
inline constexpr Feature kDotProduct =
    V3DEMU_FEATURE(shaderIntegerDotProduct, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
                   SHADER_INTEGER_DOT_PRODUCT_FEATURES, ShaderIntegerDotProductFeatures);
inline constexpr Feature kNullDescriptor = V3DEMU_FEATURE(nullDescriptor, VK_EXT_ROBUSTNESS_2_EXTENSION_NAME,
                                                          ROBUSTNESS_2_FEATURES_EXT, Robustness2FeaturesEXT);
inline constexpr Feature kRobustImageAccess2 =
    V3DEMU_FEATURE(robustImageAccess2, VK_EXT_ROBUSTNESS_2_EXTENSION_NAME, ROBUSTNESS_2_FEATURES_EXT,
                   Robustness2FeaturesEXT);
inline constexpr Feature kSubgroupExtendedTypes =
    V3DEMU_FEATURE(shaderSubgroupExtendedTypes, VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME,
                   SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES, ShaderSubgroupExtendedTypesFeatures);
inline constexpr Feature kSubgroupRotate{"shaderSubgroupRotate", "VK_KHR_shader_subgroup_rotate",
                                         kSubgroupRotateFeatures, offsetof(OneFeature, value[0])};
inline constexpr Feature kSubgroupRotateClustered{"shaderSubgroupRotateClustered",
                                                  "VK_KHR_shader_subgroup_rotate", kSubgroupRotateFeatures,
                                                  offsetof(OneFeature, value[1])};
inline constexpr Feature kMaximalReconvergence{"shaderMaximalReconvergence",
                                               "VK_KHR_shader_maximal_reconvergence",
                                               kMaximalReconvergenceFeatures, offsetof(OneFeature, value[0])};
inline constexpr Feature kMemoryModel =
    V3DEMU_FEATURE(vulkanMemoryModel, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, VULKAN_MEMORY_MODEL_FEATURES,
                   VulkanMemoryModelFeatures);
inline constexpr Feature kQuadControl{"shaderQuadControl", "VK_KHR_shader_quad_control", kQuadControlFeatures,
                                      offsetof(OneFeature, value[0])};

inline constexpr Feature kPerformanceQuery =
    V3DEMU_FEATURE(performanceCounterQueryPools, VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME,
                   PERFORMANCE_QUERY_FEATURES_KHR, PerformanceQueryFeaturesKHR);

#undef V3DEMU_FEATURE
#undef V3DEMU_CORE_FEATURE

}  // namespace feature

/// Which of some wanted features a device has, in the form in which it is asked to enable them.
class EnabledFeatures {
 public:
  EnabledFeatures(VkPhysicalDevice device, std::span<const Feature> wanted);

  bool has(const Feature& feature) const;
  const std::vector<const char*>& extensions() const { return extensions_; }
  /// The chain for VkDeviceCreateInfo::pNext, with VkPhysicalDeviceFeatures2 in it.
  const void* chain() const { return blocks_.empty() ? nullptr : blocks_.front().get(); }

 private:
  struct Block {  // a feature structure of any type: they all begin so, and VkBool32 alone follow
    VkStructureType type;
    void* next;
    std::array<VkBool32, 128> values;
  };

  VkBool32* value(const Feature& feature) const;  // nullptr: its structure is not in the chain
  void append(VkStructureType type);

  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<const char*> extensions_;
};

}  // namespace harness
