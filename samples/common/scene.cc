#include "samples/common/scene.h"

#include <algorithm>

namespace samples {

Instance instance(const Mat4& model, Vec3 color, float gloss) {
  const auto& [a, b, c, d] = model.columns;
  return {{{a.x, b.x, c.x, d.x}, {a.y, b.y, c.y, d.y}, {a.z, b.z, c.z, d.z}},
          {color.x, color.y, color.z, gloss}};
}

void Scene::add(const Mesh& mesh, std::span<const Instance> mesh_instances) {
  draws.push_back({static_cast<uint32_t>(indices.size()), static_cast<uint32_t>(mesh.indices.size()),
                   static_cast<uint32_t>(instances.size()), static_cast<uint32_t>(mesh_instances.size())});
  const auto base = static_cast<uint32_t>(vertices.size());
  for (const uint32_t index : mesh.indices) indices.push_back(base + index);
  vertices.insert(vertices.end(), mesh.vertices.begin(), mesh.vertices.end());
  instances.insert(instances.end(), mesh_instances.begin(), mesh_instances.end());
}

namespace {

/// From OpenGL's clip space.
constexpr Mat4 kVulkanClip{{Vec4{1, 0, 0, 0}, Vec4{0, -1, 0, 0}, Vec4{0, 0, 0.5f, 0}, Vec4{0, 0, 0.5f, 1}}};

/// From clip space to [0, 1]; Vulkan's depth is there already.
constexpr Mat4 texture_from_clip(ClipSpace clip) {
  const bool scale_depth = clip == ClipSpace::kOpenGl;
  return translation({0.5f, 0.5f, scale_depth ? 0.5f : 0}) * scaling({0.5f, 0.5f, scale_depth ? 0.5f : 1});
}

Mat4 view_projection(const Camera& camera, float aspect, ClipSpace clip) {
  const Mat4 m =
      perspective(camera.angle, aspect, camera.near, camera.far) * look_at(camera.eye, camera.target);
  return clip == ClipSpace::kVulkan ? kVulkanClip * m : m;
}

constexpr Vec4 with_w(Vec3 v, float w) { return {v.x, v.y, v.z, w}; }

}  // namespace

Uniforms uniforms(const Scene& scene, float aspect, ClipSpace clip) {
  Uniforms u;
  u.view_projection = view_projection(scene.camera, aspect, clip);
  u.light_view_projection = view_projection(scene.light_camera, 1, clip);
  u.shadow_from_world = texture_from_clip(clip) * u.light_view_projection;
  u.eye = with_w(scene.camera.eye, 1);
  u.light_position = with_w(scene.light.position, 1);
  u.light_color = with_w(scene.light.color, 1);
  u.sky = with_w(scene.sky, 1 / scene.camera.far);
  return u;
}

Vec4 screen_color(Vec3 color) {
  const auto encode = [](float x) { return std::pow(std::clamp(x, 0.0f, 1.0f), 1 / 2.2f); };
  return {encode(color.x), encode(color.y), encode(color.z), 1};
}

}  // namespace samples
