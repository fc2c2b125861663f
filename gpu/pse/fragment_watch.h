/// A FragmentWatch is told what becomes of the fragments of a tile: their tests, their programs and what
/// these write to the tile buffer. With one, no fragment takes a short way past tests or ports.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/draw/bin_result.h"
#include "gpu/qpu/run/vc4_thread.h"
#include "gpu/tlb/tile_buffer.h"

namespace v3d::pse {

/// The batch that is on its way.
struct WatchedBatch {
  const draw::Draw& draw;
  tlb::TileBuffer& tile;
  const tlb::FragmentBatch& batch;
  int num_quads = 0;                           ///< the others are empty
  std::array<const draw::Primitive*, 4> of{};  ///< by quad: in draw.primitives
};

/// What a program does with the tile buffer.
struct TileAccess {
  enum class Kind : uint8_t { kColor, kDepth } kind;
  qpu::TlbSpec spec;             ///< kUnknown: of VideoCore IV, whose word is rgba8 or a depth of 24 bits
  const Lanes* words = nullptr;  ///< as TlbPort has them
  LaneMask exec = kAllLanes;
  /// Of VideoCore IV, after tests: the samples that are left. Null: those that the batch covers are.
  const Lanes* left = nullptr;
};

/// All calls come from the worker that has the tile.
class FragmentWatch {
 public:
  virtual ~FragmentWatch() = default;
  /// Before any test.
  virtual void arrive(const WatchedBatch& batch) = 0;
  /// After the tests that come before the program; failing samples have left the coverage.
  virtual void tested(const WatchedBatch& batch) = 0;
  /// The program is about to run. @param sample  that it runs for; -1: for all of a pixel
  virtual void start(const WatchedBatch& batch, int sample) = 0;
  /// Around each access of the program.
  virtual void before(const TileAccess& access) = 0;
  virtual void after(const TileAccess& access) = 0;
  /// The program has ended. @param alive  the samples that it leaves in the sample mask
  virtual void end(const Lanes& alive) = 0;
};

/// The tile buffer of a program that is watched.
class WatchedPort final : public qpu::TlbPort {
 public:
  void set(qpu::TlbPort* port, FragmentWatch* watch) {
    port_ = port;
    watch_ = watch;
  }

  void write_color(qpu::Thread& thread, const qpu::TlbSpec& spec, const Lanes* words,
                   LaneMask exec) override {
    const TileAccess access = {TileAccess::Kind::kColor, spec, words, exec};
    watch_->before(access);
    port_->write_color(thread, spec, words, exec);
    watch_->after(access);
  }
  void write_depth(qpu::Thread& thread, const qpu::TlbSpec& spec, Lanes z, LaneMask exec) override {
    const TileAccess access = {TileAccess::Kind::kDepth, spec, &z, exec};
    watch_->before(access);
    port_->write_depth(thread, spec, z, exec);
    watch_->after(access);
  }
  void read_color(qpu::Thread& thread, const qpu::TlbSpec& spec, Lanes* words) override {
    port_->read_color(thread, spec, words);
  }

 private:
  qpu::TlbPort* port_ = nullptr;
  FragmentWatch* watch_ = nullptr;
};

/// The same of VideoCore IV.
class WatchedVc4Port final : public qpu::vc4::Tlb {
 public:
  WatchedVc4Port(qpu::vc4::Tlb& port, FragmentWatch& watch) : port_(port), watch_(watch) {}

  Lanes load_color(qpu::vc4::Thread& thread) override { return port_.load_color(thread); }
  void write_color(qpu::vc4::Thread& thread, const Lanes& color, LaneMask exec, bool all) override {
    const TileAccess access = {TileAccess::Kind::kColor, kNoSpec, &color, exec};
    watch_.before(access);
    port_.write_color(thread, color, exec, all);
    watch_.after(access);
  }
  void write_z(qpu::vc4::Thread& thread, const Lanes& z, LaneMask exec) override {
    const TileAccess access = {TileAccess::Kind::kDepth, kNoSpec, &z, exec, &thread.ms_flags};
    watch_.before(access);
    port_.write_z(thread, z, exec);
    watch_.after(access);
  }
  void set_stencil(qpu::vc4::Thread& thread, uint32_t setup) override { port_.set_stencil(thread, setup); }

 private:
  static constexpr qpu::TlbSpec kNoSpec = {qpu::TlbSpec::Kind::kUnknown, 0, false, false, 1};

  qpu::vc4::Tlb& port_;
  FragmentWatch& watch_;
};

}  // namespace v3d::pse
