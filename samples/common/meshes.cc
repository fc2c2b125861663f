#include "samples/common/scene.h"

namespace samples {
namespace {

/// Joins a grid of (columns + 1) x (rows + 1) vertices, row by row, that ends at the last vertex of the mesh.
void join_grid(Mesh* mesh, uint32_t columns, uint32_t rows) {
  const auto first = static_cast<uint32_t>(mesh->vertices.size()) - (columns + 1) * (rows + 1);
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t column = 0; column < columns; ++column) {
      const uint32_t a = first + row * (columns + 1) + column, b = a + columns + 1;
      mesh->indices.insert(mesh->indices.end(), {a, a + 1, b + 1, a, b + 1, b});
    }
}

/// A square from -1 to 1 along tangent and bitangent, at a distance from the origin along their cross
/// product.
void add_face(Mesh* mesh, Vec3 tangent, Vec3 bitangent, float distance, float repeat) {
  const Vec3 normal = cross(tangent, bitangent);
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 2; ++i)
      mesh->vertices.push_back({normal * distance + tangent * (2.0f * static_cast<float>(i) - 1) +
                                    bitangent * (2.0f * static_cast<float>(j) - 1),
                                normal,
                                {tangent.x, tangent.y, tangent.z, 1},
                                repeat * static_cast<float>(i),
                                repeat * static_cast<float>(j)});
  join_grid(mesh, 1, 1);
}

}  // namespace

Mesh box() {
  Mesh mesh;
  const Vec3 x{1, 0, 0}, y{0, 1, 0}, z{0, 0, 1};
  for (const float sign : {1.0f, -1.0f}) {
    add_face(&mesh, x * sign, y, 1, 1);
    add_face(&mesh, z * -sign, y, 1, 1);
    add_face(&mesh, x, z * -sign, 1, 1);
  }
  return mesh;
}

Mesh plane(float repeat) {
  Mesh mesh;
  add_face(&mesh, {1, 0, 0}, {0, 0, -1}, 0, repeat);
  return mesh;
}

Mesh sphere(uint32_t slices, uint32_t rings) {
  Mesh mesh;
  for (uint32_t j = 0; j <= rings; ++j)
    for (uint32_t i = 0; i <= slices; ++i) {
      const float u = static_cast<float>(i) / static_cast<float>(slices);
      const float v = static_cast<float>(j) / static_cast<float>(rings);
      const float around = 2 * kPi * u, up = kPi * (v - 0.5f);
      const Vec3 p{std::cos(up) * std::sin(around), std::sin(up), std::cos(up) * std::cos(around)};
      mesh.vertices.push_back({p, p, {std::cos(around), 0, -std::sin(around), 1}, 4 * u, 2 * v});
    }
  join_grid(&mesh, slices, rings);
  return mesh;
}

Mesh cylinder(uint32_t sides) {
  Mesh mesh;
  const auto angle = [sides](uint32_t i) {
    return 2 * kPi * static_cast<float>(i) / static_cast<float>(sides);
  };
  for (const float y : {-1.0f, 1.0f})
    for (uint32_t i = 0; i <= sides; ++i) {
      const Vec3 n{std::sin(angle(i)), 0, std::cos(angle(i))};
      mesh.vertices.push_back({n + Vec3{0, y, 0}, n, {n.z, 0, -n.x, 1}, angle(i) / kPi, y});
    }
  join_grid(&mesh, sides, 1);
  for (const float y : {-1.0f, 1.0f}) {
    const auto middle = static_cast<uint32_t>(mesh.vertices.size());
    mesh.vertices.push_back({{0, y, 0}, {0, y, 0}, {1, 0, 0, -y}, 0, 0});
    for (uint32_t i = 0; i <= sides; ++i) {
      const float x = std::sin(angle(i)), z = std::cos(angle(i));
      mesh.vertices.push_back({{x, y, z}, {0, y, 0}, {1, 0, 0, -y}, x, z});
    }
    for (uint32_t i = 1; i <= sides; ++i)
      mesh.indices.insert(mesh.indices.end(),
                          {middle, middle + (y > 0 ? i : i + 1), middle + (y > 0 ? i + 1 : i)});
  }
  return mesh;
}

Mesh torus(float thickness, uint32_t sides, uint32_t segments) {
  Mesh mesh;
  for (uint32_t j = 0; j <= sides; ++j)
    for (uint32_t i = 0; i <= segments; ++i) {
      const float u = static_cast<float>(i) / static_cast<float>(segments);
      const float v = static_cast<float>(j) / static_cast<float>(sides);
      const Vec3 out{std::cos(2 * kPi * u), std::sin(2 * kPi * u), 0}, along{-out.y, out.x, 0};
      const Vec3 normal = out * std::cos(2 * kPi * v) + Vec3{0, 0, std::sin(2 * kPi * v)};
      mesh.vertices.push_back(
          {out + normal * thickness, normal, {along.x, along.y, along.z, 1}, 6 * u, 2 * v});
    }
  join_grid(&mesh, segments, sides);
  return mesh;
}

}  // namespace samples
