/* VK_KHR_display: shows frames on the first display, which nobody else may have.
 *
 *   vulkan_display [FRAMES]     FRAMES: default 30
 *
 * A field of blue, in it a red and a green rectangle, and a white bar whose place says how many frames there
 * were: 16 pixels further right with each. Prints the device's name. Exit status: 0, or 1 and what failed. */
#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

enum { kImages = 8, kStep = 16 };

#define CHECK(call)                                              \
  do {                                                           \
    const VkResult result_ = (call);                             \
    if (result_ < 0) {                                           \
      fprintf(stderr, "%s: VkResult %d\n", #call, (int)result_); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "no %s\n", what);
  exit(1);
}

static VkInstance instance;
static VkPhysicalDevice gpu;
static VkDevice device;
static VkQueue queue;
static VkSurfaceKHR surface;
static VkExtent2D extent;
static VkSwapchainKHR swapchain;
static VkRenderPass pass;
static VkFramebuffer framebuffers[kImages];
static VkCommandPool pool;

static void open_device(void) {
  const char* extensions[] = {"VK_KHR_surface", "VK_KHR_display"};
  const VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                              .enabledExtensionCount = 2,
                                              .ppEnabledExtensionNames = extensions};
  CHECK(vkCreateInstance(&instance_info, NULL, &instance));
  uint32_t count = 1;
  CHECK(vkEnumeratePhysicalDevices(instance, &count, &gpu));
  require(count == 1, "device");
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(gpu, &properties);
  printf("renderer: %s\n", properties.deviceName);
  fflush(stdout);
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue_info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
  const char* swapchains = "VK_KHR_swapchain";
  const VkDeviceCreateInfo device_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                          .queueCreateInfoCount = 1,
                                          .pQueueCreateInfos = &queue_info,
                                          .enabledExtensionCount = 1,
                                          .ppEnabledExtensionNames = &swapchains};
  CHECK(vkCreateDevice(gpu, &device_info, NULL, &device));
  vkGetDeviceQueue(device, 0, 0, &queue);
}

/* The first mode of the first display, on the first plane that takes it. */
static void make_surface(void) {
  uint32_t count = 1;
  VkDisplayPropertiesKHR display;
  CHECK(vkGetPhysicalDeviceDisplayPropertiesKHR(gpu, &count, &display));
  require(count == 1, "display");
  VkDisplayModePropertiesKHR mode;
  CHECK(vkGetDisplayModePropertiesKHR(gpu, display.display, &count, &mode));
  require(count == 1, "mode");
  extent = mode.parameters.visibleRegion;
  const VkDisplaySurfaceCreateInfoKHR info = {.sType = VK_STRUCTURE_TYPE_DISPLAY_SURFACE_CREATE_INFO_KHR,
                                              .displayMode = mode.displayMode,
                                              .transform = VK_SURFACE_TRANSFORM_IDENTITY_BIT_KHR,
                                              .alphaMode = VK_DISPLAY_PLANE_ALPHA_OPAQUE_BIT_KHR,
                                              .imageExtent = extent};
  CHECK(vkCreateDisplayPlaneSurfaceKHR(instance, &info, NULL, &surface));
  VkBool32 presents = VK_FALSE;
  CHECK(vkGetPhysicalDeviceSurfaceSupportKHR(gpu, 0, surface, &presents));
  require((int)presents, "queue that presents");
}

static void make_pass(VkFormat format) {
  const VkAttachmentDescription attachment = {.format = format,
                                              .samples = VK_SAMPLE_COUNT_1_BIT,
                                              .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
                                              .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
                                              .stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE,
                                              .stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE,
                                              .finalLayout = VK_IMAGE_LAYOUT_PRESENT_SRC_KHR};
  const VkAttachmentReference color = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  const VkSubpassDescription subpass = {.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS,
                                        .colorAttachmentCount = 1,
                                        .pColorAttachments = &color};
  const VkRenderPassCreateInfo info = {.sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO,
                                       .attachmentCount = 1,
                                       .pAttachments = &attachment,
                                       .subpassCount = 1,
                                       .pSubpasses = &subpass};
  CHECK(vkCreateRenderPass(device, &info, NULL, &pass));
}

static void make_framebuffer(VkImage image, VkFormat format, VkFramebuffer* framebuffer) {
  const VkImageViewCreateInfo view_info = {.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                                           .image = image,
                                           .viewType = VK_IMAGE_VIEW_TYPE_2D,
                                           .format = format,
                                           .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
  VkImageView view;
  CHECK(vkCreateImageView(device, &view_info, NULL, &view));
  const VkFramebufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO,
                                        .renderPass = pass,
                                        .attachmentCount = 1,
                                        .pAttachments = &view,
                                        .width = extent.width,
                                        .height = extent.height,
                                        .layers = 1};
  CHECK(vkCreateFramebuffer(device, &info, NULL, framebuffer));
}

static void make_swapchain(void) {
  const VkFormat format = VK_FORMAT_B8G8R8A8_UNORM;
  const VkSwapchainCreateInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
                                         .surface = surface,
                                         .minImageCount = 3,
                                         .imageFormat = format,
                                         .imageColorSpace = VK_COLOR_SPACE_SRGB_NONLINEAR_KHR,
                                         .imageExtent = extent,
                                         .imageArrayLayers = 1,
                                         .imageUsage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT,
                                         .preTransform = VK_SURFACE_TRANSFORM_IDENTITY_BIT_KHR,
                                         .compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR,
                                         .presentMode = VK_PRESENT_MODE_FIFO_KHR};
  CHECK(vkCreateSwapchainKHR(device, &info, NULL, &swapchain));
  make_pass(format);
  uint32_t count = kImages;
  VkImage images[kImages];
  CHECK(vkGetSwapchainImagesKHR(device, swapchain, &count, images));
  for (uint32_t i = 0; i < count; ++i) make_framebuffer(images[i], format, &framebuffers[i]);
  const VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  CHECK(vkCreateCommandPool(device, &pool_info, NULL, &pool));
}

/* Drawn inside the pass, by the GPU's shaders. */
static void rectangle(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
                      float red, float green, float blue) {
  const VkClearAttachment color = {VK_IMAGE_ASPECT_COLOR_BIT, 0, {.color = {{red, green, blue, 1}}}};
  const VkClearRect where = {{{(int32_t)x, (int32_t)y}, {width, height}}, 0, 1};
  vkCmdClearAttachments(commands, 1, &color, 1, &where);
}

static VkCommandBuffer record(uint32_t image, uint32_t frame) {
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 1};
  VkCommandBuffer commands;
  CHECK(vkAllocateCommandBuffers(device, &info, &commands));
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  CHECK(vkBeginCommandBuffer(commands, &begin));
  const VkClearValue blue = {.color = {{0, 0, 1, 1}}};
  const VkRenderPassBeginInfo pass_info = {.sType = VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO,
                                           .renderPass = pass,
                                           .framebuffer = framebuffers[image],
                                           .renderArea = {{0, 0}, extent},
                                           .clearValueCount = 1,
                                           .pClearValues = &blue};
  vkCmdBeginRenderPass(commands, &pass_info, VK_SUBPASS_CONTENTS_INLINE);
  const uint32_t w = extent.width, h = extent.height;
  rectangle(commands, w / 8, h / 4, w / 4, h / 4, 1, 0, 0);
  rectangle(commands, w * 5 / 8, h / 4, w / 4, h / 4, 0, 1, 0);
  rectangle(commands, frame * kStep % (w - kStep), h * 3 / 4, kStep, h / 8, 1, 1, 1);
  vkCmdEndRenderPass(commands);
  CHECK(vkEndCommandBuffer(commands));
  return commands;
}

static void show(uint32_t frame, VkSemaphore acquired, VkSemaphore drawn) {
  uint32_t image = 0;
  CHECK(vkAcquireNextImageKHR(device, swapchain, UINT64_MAX, acquired, VK_NULL_HANDLE, &image));
  const VkCommandBuffer commands = record(image, frame);
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT;
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .waitSemaphoreCount = 1,
                               .pWaitSemaphores = &acquired,
                               .pWaitDstStageMask = &stage,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &drawn};
  CHECK(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE));
  const VkPresentInfoKHR present = {.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR,
                                    .waitSemaphoreCount = 1,
                                    .pWaitSemaphores = &drawn,
                                    .swapchainCount = 1,
                                    .pSwapchains = &swapchain,
                                    .pImageIndices = &image};
  CHECK(vkQueuePresentKHR(queue, &present));
  CHECK(vkDeviceWaitIdle(device));
  vkFreeCommandBuffers(device, pool, 1, &commands);
}

int main(int argc, char** argv) {
  const uint32_t frames = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 30;
  open_device();
  make_surface();
  make_swapchain();
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  VkSemaphore acquired, drawn;
  CHECK(vkCreateSemaphore(device, &info, NULL, &acquired));
  CHECK(vkCreateSemaphore(device, &info, NULL, &drawn));
  for (uint32_t frame = 0; frame < frames; ++frame) show(frame, acquired, drawn);
  /* Mesa 25.0.7 frees a swapchain whose last flip is still to come. That is over when two of three images can
   * be had. */
  const VkSemaphore unused[] = {acquired, drawn};
  for (uint32_t i = 0, image; i < 2; ++i)
    CHECK(vkAcquireNextImageKHR(device, swapchain, UINT64_MAX, unused[i], VK_NULL_HANDLE, &image));
  printf("%u frames of %ux%u\n", frames, extent.width, extent.height);
  vkDestroySwapchainKHR(device, swapchain, NULL);
  vkDestroySurfaceKHR(instance, surface, NULL);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
  return 0;
}
