/// Optional features of Vulkan devices, by the names that the specification gives them.
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

#define V3DEMU_CORE_FEATURE(name)                                 \
  {                                                               \
#name, nullptr, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, \
        offsetof(VkPhysicalDeviceFeatures2, features.name)        \
  }
inline constexpr Feature kInt16 = V3DEMU_CORE_FEATURE(shaderInt16);
inline constexpr Feature kDualSource = V3DEMU_CORE_FEATURE(dualSrcBlend);
inline constexpr Feature kIndependentBlend = V3DEMU_CORE_FEATURE(independentBlend);
inline constexpr Feature kPreciseOcclusion = V3DEMU_CORE_FEATURE(occlusionQueryPrecise);
inline constexpr Feature kAnisotropy = V3DEMU_CORE_FEATURE(samplerAnisotropy);
#undef V3DEMU_CORE_FEATURE

inline constexpr Feature kFloat16{"shaderFloat16", VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
                                  offsetof(VkPhysicalDeviceShaderFloat16Int8Features, shaderFloat16)};
inline constexpr Feature kInt8{"shaderInt8", VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                               VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
                               offsetof(VkPhysicalDeviceShaderFloat16Int8Features, shaderInt8)};
inline constexpr Feature kStorage16{"storageBuffer16BitAccess", nullptr,
                                    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
                                    offsetof(VkPhysicalDevice16BitStorageFeatures, storageBuffer16BitAccess)};
inline constexpr Feature kStorage8{"storageBuffer8BitAccess", VK_KHR_8BIT_STORAGE_EXTENSION_NAME,
                                   VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                                   offsetof(VkPhysicalDevice8BitStorageFeatures, storageBuffer8BitAccess)};
inline constexpr Feature kDotProduct{
    "shaderIntegerDotProduct", VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
    offsetof(VkPhysicalDeviceShaderIntegerDotProductFeatures, shaderIntegerDotProduct)};
inline constexpr Feature kNullDescriptor{"nullDescriptor", VK_EXT_ROBUSTNESS_2_EXTENSION_NAME,
                                         VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT,
                                         offsetof(VkPhysicalDeviceRobustness2FeaturesEXT, nullDescriptor)};
inline constexpr Feature kRobustImageAccess2{
    "robustImageAccess2", VK_EXT_ROBUSTNESS_2_EXTENSION_NAME,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT,
    offsetof(VkPhysicalDeviceRobustness2FeaturesEXT, robustImageAccess2)};
inline constexpr Feature kSubgroupExtendedTypes{
    "shaderSubgroupExtendedTypes", VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES,
    offsetof(VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures, shaderSubgroupExtendedTypes)};
inline constexpr Feature kSubgroupRotate{"shaderSubgroupRotate", "VK_KHR_shader_subgroup_rotate",
                                         kSubgroupRotateFeatures, offsetof(OneFeature, value[0])};
inline constexpr Feature kSubgroupRotateClustered{"shaderSubgroupRotateClustered",
                                                  "VK_KHR_shader_subgroup_rotate", kSubgroupRotateFeatures,
                                                  offsetof(OneFeature, value[1])};
inline constexpr Feature kMaximalReconvergence{"shaderMaximalReconvergence",
                                               "VK_KHR_shader_maximal_reconvergence",
                                               kMaximalReconvergenceFeatures, offsetof(OneFeature, value[0])};
inline constexpr Feature kMemoryModel{"vulkanMemoryModel", VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
                                      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
                                      offsetof(VkPhysicalDeviceVulkanMemoryModelFeatures, vulkanMemoryModel)};
inline constexpr Feature kQuadControl{"shaderQuadControl", "VK_KHR_shader_quad_control", kQuadControlFeatures,
                                      offsetof(OneFeature, value[0])};

inline constexpr Feature kPerformanceQuery{
    "performanceCounterQueryPools", VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PERFORMANCE_QUERY_FEATURES_KHR,
    offsetof(VkPhysicalDevicePerformanceQueryFeaturesKHR, performanceCounterQueryPools)};

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
