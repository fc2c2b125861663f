#include <algorithm>

#include "samples/common/scene.h"

namespace samples {
namespace {

constexpr Vec3 kUp{0, 1, 0};

Mat4 placed(Vec3 at, Vec3 size) { return translation(at) * scaling(size); }

Mat4 placed(Vec3 at, float size) { return placed(at, {size, size, size}); }

/// A box or cylinder of the given thickness from a to b.
Mat4 beam(Vec3 a, Vec3 b, float thickness) {
  const Vec3 along = b - a, y = normalize(along);
  const Vec3 x = normalize(cross(y, std::abs(y.z) < 0.9f ? Vec3{0, 0, 1} : Vec3{1, 0, 0})), z = cross(x, y);
  const Mat4 turn{{Vec4{x.x, x.y, x.z, 0}, Vec4{y.x, y.y, y.z, 0}, Vec4{z.x, z.y, z.z, 0}, Vec4{0, 0, 0, 1}}};
  const float half = std::sqrt(dot(along, along)) / 2;
  return translation((a + b) * 0.5f) * turn * scaling({thickness, half, thickness});
}

/// Colours of a full circle, hue 0 to 1.
Vec3 rainbow(float hue) {
  const auto wave = [hue](float phase) { return 0.5f + 0.5f * std::cos(2 * kPi * (hue + phase)); };
  return {wave(0), wave(-1.0f / 3), wave(-2.0f / 3)};
}

Vec3 mix(Vec3 a, Vec3 b, float t) { return a * (1 - t) + b * t; }

}  // namespace

/// A small court of columns on a tiled floor, lit by one lamp that throws shadows.
Scene shadow_scene() {
  Scene scene;
  std::vector<Instance> boxes, cylinders, balls;
  constexpr int kTiles = 16;
  for (int j = 0; j < kTiles; ++j)
    for (int i = 0; i < kTiles; ++i) {
      constexpr float kMiddle = 0.5f * (kTiles - 1);
      const Vec3 at{static_cast<float>(i) - kMiddle, -0.1f, static_cast<float>(j) - kMiddle};
      const Vec3 color = (i + j) % 2 ? Vec3{0.75f, 0.68f, 0.55f} : Vec3{0.36f, 0.17f, 0.12f};
      boxes.push_back(instance(placed(at, {0.485f, 0.1f, 0.485f}), color, 0.35f));
    }
  constexpr int kColumns = 7;
  for (int i = 0; i < kColumns; ++i) {
    const float angle = kPi * (0.12f + 0.76f * static_cast<float>(i) / (kColumns - 1));
    const Vec3 at{-4.6f * std::cos(angle), 0, 0.6f - 4.6f * std::sin(angle)};
    const Vec3 stone{0.72f, 0.7f, 0.66f};
    cylinders.push_back(instance(placed(at + kUp * 1.6f, {0.24f, 1.3f, 0.24f}), stone));
    boxes.push_back(instance(placed(at + kUp * 0.15f, {0.4f, 0.15f, 0.4f}), stone));
    boxes.push_back(instance(placed(at + kUp * 3.0f, {0.4f, 0.12f, 0.4f}), stone));
    balls.push_back(
        instance(placed(at + kUp * 3.42f, 0.3f), rainbow(static_cast<float>(i) / kColumns) * 0.8f, 0.8f));
  }
  cylinders.push_back(instance(placed({0, 0.2f, 0}, {1.1f, 0.2f, 1.1f}), {0.25f, 0.27f, 0.32f}, 0.6f));
  balls.push_back(instance(placed({0, 1.35f, 0}, 0.95f), {0.95f, 0.62f, 0.16f}, 0.95f));
  for (int i = 0; i < 4; ++i) {
    const float y = 0.34f + 0.68f * static_cast<float>(i);
    boxes.push_back(
        instance(translation({2.6f, y, 1.0f}) * rotation(kUp, 0.5f + 0.55f * static_cast<float>(i)) *
                     scaling({0.34f, 0.34f, 0.34f}),
                 mix({0.15f, 0.42f, 0.2f}, {0.75f, 0.8f, 0.2f}, static_cast<float>(i) / 3), 0.4f));
  }
  for (int i = 0; i < 5; ++i) {
    const float x = -2.2f + 1.05f * static_cast<float>(i);
    balls.push_back(instance(placed({x, 0.27f, 2.7f + 0.25f * std::sin(2.3f * x)}, 0.27f),
                             rainbow(0.55f + 0.09f * static_cast<float>(i)), 0.9f));
  }
  const std::vector<Instance> rings{
      instance(translation({-2.5f, 1.02f, 0.9f}) * rotation(kUp, 0.6f) * scaling({0.82f, 0.82f, 0.82f}),
               {0.05f, 0.45f, 0.5f}, 0.9f),
      instance(translation({0, 1.35f, 0}) * rotation(normalize({1, 0.3f, 0.25f}), 1.25f) *
                   scaling({1.45f, 1.45f, 1.45f}),
               {0.62f, 0.12f, 0.1f}, 0.8f)};
  scene.add(box(), boxes);
  scene.add(cylinder(40), cylinders);
  scene.add(sphere(48, 24), balls);
  scene.add(torus(0.1f, 20, 72), {&rings[1], 1});
  scene.add(torus(0.24f, 24, 64), {&rings[0], 1});
  scene.camera = {{0.6f, 5.0f, 8.6f}, {0, 1.0f, -0.5f}, 0.76f, 0.5f, 40};
  scene.light = {{-4.5f, 8.2f, 5.5f}, {1.0f, 0.93f, 0.8f}};
  scene.light_camera = {scene.light.position, {0, 0.4f, -0.7f}, 1.15f, 3, 20};
  scene.sky = {0.16f, 0.24f, 0.36f};
  return scene;
}

/// Brick surfaces from close by to the horizon.
Scene normal_map_scene() {
  Scene scene;
  const Vec3 white{1, 1, 1};
  const std::vector<Instance> floor{instance(placed({0, 0, -14}, {24, 1, 24}), white, 0.35f)};
  const std::vector<Instance> balls{instance(placed({-1.9f, 1.15f, 0.2f}, 1.15f), {1.0f, 0.85f, 0.7f}, 0.7f)};
  const std::vector<Instance> boxes{
      instance(translation({2.1f, 0.9f, -0.6f}) * rotation(kUp, 0.65f) * scaling({0.9f, 0.9f, 0.9f}),
               {0.75f, 0.9f, 1.0f}, 0.5f)};
  const std::vector<Instance> rings{
      instance(translation({0.4f, 1.75f, -2.6f}) * rotation(kUp, -0.35f) * scaling({1.35f, 1.35f, 1.35f}),
               {0.85f, 1.0f, 0.7f}, 0.9f)};
  scene.add(plane(16), floor);
  scene.add(sphere(64, 32), balls);
  scene.add(box(), boxes);
  scene.add(torus(0.33f, 32, 96), rings);
  scene.camera = {{0.2f, 2.1f, 5.6f}, {0.1f, 1.2f, 0}, 0.8f, 0.2f, 42};
  scene.light = {{2.2f, 4.2f, 3.4f}, {1.25f, 1.15f, 1.0f}};
  scene.sky = {0.32f, 0.42f, 0.56f};
  return scene;
}

/// 5184 cubes of one draw call: a wave that runs out from the middle.
Scene instancing_scene() {
  Scene scene;
  constexpr int kSide = 72;
  constexpr float kDistance = 0.42f;
  std::vector<Instance> cubes;
  for (int j = 0; j < kSide; ++j)
    for (int i = 0; i < kSide; ++i) {
      const float x = (static_cast<float>(i) - 0.5f * (kSide - 1)) * kDistance;
      const float z = (static_cast<float>(j) - 0.5f * (kSide - 1)) * kDistance;
      const float distance = std::sqrt(x * x + z * z);
      const float wave = std::cos(1.15f * distance) * std::exp(-0.09f * distance);
      const float high = 0.5f + 0.5f * wave;
      const Vec3 color = rainbow(std::atan2(z, x) / (2 * kPi) + 0.08f * distance) * (0.2f + 0.8f * high);
      const float size = 0.11f + 0.08f * high;
      cubes.push_back(instance(translation({x, 1.5f * wave, z}) *
                                   rotation(normalize({z + 0.01f, 0.4f, -x}), 0.9f * wave) *
                                   scaling({size, size, size}),
                               color, 0.25f));
    }
  scene.add(box(), cubes);
  scene.camera = {{6.5f, 6.4f, 9.5f}, {0, -0.6f, 0}, 0.75f, 0.5f, 36};
  scene.light = {{-7, 7, 2}, {1.15f, 1.05f, 0.95f}};
  scene.sky = {0.012f, 0.018f, 0.05f};
  return scene;
}

/// A Ferris wheel: rims, spokes and struts of a pixel or less across.
Scene msaa_scene() {
  Scene scene;
  constexpr int kCabins = 18;
  const Vec3 hub{0, 3.6f, 0}, steel{0.62f, 0.66f, 0.72f};
  std::vector<Instance> beams, boxes, rims, balls;
  const auto on_wheel = [&](float step, float radius, float z) {
    const float angle = 2 * kPi * step / kCabins + 0.1f;
    return hub + Vec3{radius * std::cos(angle), radius * std::sin(angle), z};
  };
  for (int i = 0; i < kCabins; ++i) {
    const auto step = static_cast<float>(i);
    for (const float z : {-0.35f, 0.35f}) {
      beams.push_back(instance(beam(hub + Vec3{0, 0, z}, on_wheel(step, 3.0f, z), 0.007f), steel, 0.5f));
      beams.push_back(
          instance(beam(on_wheel(step, 2.6f, z), on_wheel(step + 1, 3.0f, z), 0.009f), {0.85f, 0.75f, 0.4f}));
      beams.push_back(
          instance(beam(on_wheel(step, 3.0f, z), on_wheel(step + 1, 2.6f, z), 0.009f), {0.85f, 0.75f, 0.4f}));
    }
    beams.push_back(instance(beam(on_wheel(step, 3.0f, -0.35f), on_wheel(step, 3.0f, 0.35f), 0.014f), steel));
    const Vec3 axle = on_wheel(step, 3.0f, 0);
    const Vec3 paint = rainbow(step / kCabins);
    beams.push_back(instance(beam(axle, axle - kUp * 0.3f, 0.012f), steel));
    boxes.push_back(instance(placed(axle - kUp * 0.42f, {0.16f, 0.12f, 0.2f}), paint * 0.85f, 0.7f));
    boxes.push_back(instance(placed(axle - kUp * 0.27f, {0.18f, 0.015f, 0.22f}), {0.9f, 0.9f, 0.9f}));
  }
  for (const float z : {-0.35f, 0.35f})
    for (const float radius : {2.6f, 3.0f})
      rims.push_back(instance(placed(hub + Vec3{0, 0, z}, radius), {0.8f, 0.2f, 0.16f}, 0.6f));
  for (const float z : {-0.8f, 0.8f}) {
    for (const float x : {-1.9f, 1.9f})
      beams.push_back(instance(beam({x, 0, z * 1.5f}, hub + Vec3{0, 0, z * 0.7f}, 0.05f), steel, 0.6f));
    for (int i = 1; i < 5; ++i) {
      const float share = static_cast<float>(i) / 5, x = 1.9f * (1 - share), y = hub.y * share;
      const float depth = z * (1.5f - 0.8f * share);
      beams.push_back(instance(beam({-x, y, depth}, {x, y, depth}, 0.014f), steel));
      beams.push_back(instance(beam({-x, y, depth}, {x * 0.8f, y + 0.6f, depth}, 0.006f), steel));
    }
  }
  beams.push_back(instance(beam(hub + Vec3{0, 0, -0.7f}, hub + Vec3{0, 0, 0.7f}, 0.1f), {0.3f, 0.3f, 0.34f}));
  balls.push_back(instance(placed(hub + Vec3{0, 0, 0.7f}, 0.16f), {0.95f, 0.75f, 0.2f}, 0.9f));
  boxes.push_back(instance(placed({0, -0.1f, 0}, {30, 0.1f, 30}), {0.16f, 0.3f, 0.14f}, 0.1f));
  for (int i = 0; i < 41; ++i) {
    const float x = 0.35f * static_cast<float>(i - 20);
    beams.push_back(instance(beam({x, 0, 2.2f}, {x, 0.42f, 2.2f}, 0.012f), {0.9f, 0.9f, 0.9f}));
  }
  for (const float y : {0.12f, 0.36f})
    beams.push_back(instance(beam({-7, y, 2.2f}, {7, y, 2.2f}, 0.008f), {0.9f, 0.9f, 0.9f}));
  scene.add(box(), boxes);
  scene.add(cylinder(12), beams);
  scene.add(torus(0.008f, 8, 160), rims);
  scene.add(sphere(24, 12), balls);
  scene.camera = {{3.2f, 2.3f, 9.2f}, {0.1f, 3.1f, 0}, 0.78f, 0.5f, 46};
  scene.light = {{-8, 14, 10}, {1.1f, 1.05f, 0.95f}};
  scene.sky = {0.36f, 0.52f, 0.74f};
  return scene;
}

}  // namespace samples
