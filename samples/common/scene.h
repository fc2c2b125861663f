/// The pictures show this, whatever API draws them: meshes, the instances of each, the camera and the light.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samples/common/linear.h"

namespace samples {

/// Attributes 0 to 3 of the shaders.
struct Vertex {
  Vec3 position, normal;
  Vec4 tangent;  ///< direction of u; w is the sign of the direction of v, cross(normal, tangent) * w
  float u = 0, v = 0;
};

/// Counter-clockwise triangles seen from outside.
struct Mesh {
  std::vector<Vertex> vertices;
  std::vector<uint32_t> indices;
};

Mesh box();                                    ///< [-1, 1] in each direction
Mesh plane(float repeat);                      ///< y = 0, [-1, 1] in x and z; u, v to `repeat`
Mesh sphere(uint32_t slices, uint32_t rings);  ///< radius 1; u 0..4, v 0..2
Mesh cylinder(uint32_t sides);                 ///< radius 1, y in [-1, 1], closed
Mesh torus(float thickness, uint32_t sides,
           uint32_t segments);  ///< in the plane z = 0; radius 1 to the tube's middle

/// Attributes 4 to 7 of the shaders: the upper three rows of the model matrix, and a colour with gloss (0..1)
/// as alpha. A model may scale boxes and cylinders along their axes and other meshes evenly, so that it turns
/// normals rightly.
struct Instance {
  Vec4 rows[3];
  Vec4 color;
};

Instance instance(const Mat4& model, Vec3 color, float gloss = 0.2f);

/// Indexed triangles, drawn for instances first_instance and following.
struct Draw {
  uint32_t first_index = 0, index_count = 0, first_instance = 0, instance_count = 0;
};

struct Camera {
  Vec3 eye, target;
  float angle = 0;  ///< radians from the lower to the upper edge
  float near = 0, far = 0;
};

struct Light {
  Vec3 position, color;
};

struct Scene {
  std::vector<Vertex> vertices;
  std::vector<uint32_t> indices;
  std::vector<Instance> instances;
  std::vector<Draw> draws;
  Camera camera, light_camera;  ///< the second sees the scene from the light, for shadow maps
  Light light;
  Vec3 sky;  ///< clear colour, and what distant surfaces fade to

  void add(const Mesh& mesh, std::span<const Instance> mesh_instances);
};

Scene shadow_scene();
Scene normal_map_scene();
Scene instancing_scene();
Scene msaa_scene();

enum class ClipSpace {
  kOpenGl,  ///< y up, depth -1..1
  kVulkan,  ///< y down, depth 0..1
};

/// The uniform block of all shaders, std140.
struct Uniforms {
  Mat4 view_projection;
  Mat4 light_view_projection;
  Mat4 shadow_from_world;  ///< to texture coordinates and depth of the shadow map, before division by w
  Vec4 eye;
  Vec4 light_position;
  Vec4 light_color;
  Vec4 sky;
};

Uniforms uniforms(const Scene& scene, float aspect, ClipSpace clip);

/// As the fragment shaders write colours: clamped, with gamma 2.2.
Vec4 screen_color(Vec3 color);

}  // namespace samples
