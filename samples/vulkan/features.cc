#include "samples/vulkan/features.h"

#include <algorithm>
#include <cstring>

namespace harness {

namespace {

std::vector<VkExtensionProperties> extensions_of(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, all.data());
  return all;
}

}  // namespace

EnabledFeatures::EnabledFeatures(VkPhysicalDevice device, std::span<const Feature> wanted) {
  const std::vector<VkExtensionProperties> offered = extensions_of(device);
  const auto is_offered = [&](const char* name) {
    return !name || std::ranges::any_of(offered, [&](const VkExtensionProperties& e) {
      return std::strcmp(e.extensionName, name) == 0;
    });
  };
  append(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  for (const Feature& f : wanted)
    if (is_offered(f.extension) && !value(f)) append(f.structure);
  vkGetPhysicalDeviceFeatures2(device, reinterpret_cast<VkPhysicalDeviceFeatures2*>(blocks_.front().get()));

  // What the device has and nobody asked for stays off.
  std::vector<const Feature*> found;
  for (const Feature& f : wanted)
    if (const VkBool32* v = value(f); v && *v) found.push_back(&f);
  for (const auto& block : blocks_) block->values.fill(VK_FALSE);
  for (const Feature* f : found) {
    *value(*f) = VK_TRUE;
    const auto same = [&](const char* name) { return std::strcmp(name, f->extension) == 0; };
    if (f->extension && std::ranges::none_of(extensions_, same)) extensions_.push_back(f->extension);
  }
}

bool EnabledFeatures::has(const Feature& feature) const {
  const VkBool32* const v = value(feature);
  return v && *v;
}

VkBool32* EnabledFeatures::value(const Feature& feature) const {
  for (const auto& block : blocks_)
    if (block->type == feature.structure)
      return &block->values[(feature.offset - offsetof(Block, values)) / sizeof(VkBool32)];
  return nullptr;
}

void EnabledFeatures::append(VkStructureType type) {
  blocks_.push_back(std::make_unique<Block>(Block{type, nullptr, {}}));
  if (blocks_.size() > 1) blocks_[blocks_.size() - 2]->next = blocks_.back().get();
}

}  // namespace harness
