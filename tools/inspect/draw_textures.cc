#include "tools/inspect/draw_textures.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/qpu/run/vc4_thread.h"

namespace v3d::inspect {

class DrawTextures::Observer final : public qpu::Observer {
 public:
  explicit Observer(DrawTextures& of) : of_(of) {}
  void before(const qpu::Thread&, uint64_t, const qpu::Instruction*) override {}
  void after(const qpu::Thread&, const char*) override {}
  void texture_lookup(const qpu::Thread&, const tmu::TextureLookup& lookup, int) override {
    of_.add(used_texture(lookup));
  }
  void finished(const qpu::Thread&, Next) override {}

 private:
  DrawTextures& of_;
};

class DrawTextures::Vc4Observer final : public qpu::vc4::Observer {
 public:
  explicit Vc4Observer(DrawTextures& of) : of_(of) {}
  void before(const qpu::vc4::Thread&, uint64_t) override {}
  void after(const qpu::vc4::Thread&, uint64_t, const char*) override {}
  void texture_lookup(const qpu::vc4::Thread&, const qpu::vc4::Lookup& lookup) override {
    of_.add(used_texture(lookup));
  }
  void finished(const qpu::vc4::Thread&, Next) override {}

 private:
  DrawTextures& of_;
};

DrawTextures::DrawTextures(JobControl& control)
    : control_(control),
      observer_(std::make_unique<Observer>(*this)),
      vc4_observer_(std::make_unique<Vc4Observer>(*this)) {}
DrawTextures::~DrawTextures() = default;

/// All threads of a stage come before those of the next one.
bool DrawTextures::is_observed(const char* stage) {
  if (std::strcmp(stage, stage_) != 0) threads_ = 0;
  stage_ = stage;
  if (++threads_ <= kMostThreads) return true;
  if (std::strcmp(stage, "fragment") == 0) control_.cancel();
  return false;
}

void DrawTextures::start(const char* stage, qpu::Thread& thread) {
  thread.observer = is_observed(stage) ? observer_.get() : nullptr;
}

void DrawTextures::start_vc4(const char* stage, qpu::vc4::Thread& thread) {
  thread.observer = is_observed(stage) ? vc4_observer_.get() : nullptr;
}

void DrawTextures::add(const UsedTexture& used) {
  const bool known = std::any_of(textures_.begin(), textures_.end(), [&](const DrawTexture& one) {
    return one.used == used && one.stage == stage_;
  });
  if (!known && textures_.size() < kMostTextures) textures_.push_back({stage_, used});
}

SampleOfDraw::SampleOfDraw(draw::BinResult& bin, uint32_t draw)
    : bin_(bin), draw_(draw), cfg_(bin.draws[draw].state.cfg), whole_(bin.tiles) {
  constexpr size_t kMostTiles = 64, kMostEntries = 64;
  std::vector<size_t> tiles;
  for (size_t n = 0; n < bin.tiles.size(); ++n) {
    std::vector<draw::ListEntry>& list = bin.tiles[n];
    std::erase_if(list, [draw](const draw::ListEntry& entry) { return entry.draw != draw; });
    if (!list.empty()) tiles.push_back(n);
    list.resize(std::min(list.size(), kMostEntries));
  }
  // Those that are left stand all over the frame.
  const size_t step = tiles.size() / kMostTiles + 1;
  for (size_t n = 0; n < tiles.size(); ++n)
    if (n % step != 0) bin.tiles[tiles[n]].clear();
  draw::CfgBits& cfg = bin.draws[draw].state.cfg;
  cfg.depth_func = Compare::kAlways;
  cfg.stencil = cfg.depth_bounds = false;
}

SampleOfDraw::~SampleOfDraw() {
  bin_.draws[draw_].state.cfg = cfg_;
  bin_.tiles = std::move(whole_);
}

}  // namespace v3d::inspect
