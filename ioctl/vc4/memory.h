/// All buffers come from the contiguous memory of the board; here is what the driver vc4 knows of each
/// (vc4-abi.md 2.6 to 2.10, 6.5, 6.6; Linux vc4_bo.c).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ioctl/base/account.h"
#include "ioctl/base/driver_slot.h"
#include "ioctl/memory/bo.h"
#include "ioctl/vc4/program.h"

namespace v3d::ioctl::vc4 {

class Object;

/// What the kernel itself calls buffers in the file bo_stats of debugfs (vc4_bo.c, bo_type_names).
enum class KernelLabel : uint8_t { kV3d, kShader, kDumb, kBinner, kBinList };
inline constexpr size_t kNumKernelLabels = 5;
const char* name_of(KernelLabel label);

/// As much as Linux has set aside at the start. When there is too little left, all buffers that are marked as
/// not needed lose their contents. Thread safe.
class ContiguousMemory : public std::enable_shared_from_this<ContiguousMemory> {
 public:
  explicit ContiguousMemory(uint64_t bytes);

  /// Pieces of a label.
  struct Use {
    std::string name;
    uint64_t number = 0, bytes = 0;
  };
  /// A part of it, given back when this is destroyed. Movable.
  class Piece {
   public:
    Piece() = default;
    Piece(Piece&& other) noexcept { *this = std::move(other); }
    Piece& operator=(Piece&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(bytes_, other.bytes_);
      std::swap(size_, other.size_);
      std::swap(use_, other.use_);
      return *this;
    }
    ~Piece() {
      if (memory_) memory_->give_back(*this);
    }

   private:
    friend class ContiguousMemory;
    friend class Object;
    std::shared_ptr<ContiguousMemory> memory_;
    uint64_t bytes_ = 0;  // that it still takes
    uint64_t size_ = 0;
    Use* use_ = nullptr;  // null: counted nowhere
  };

  /// 0, or ENOMEM when it is not to be had although all is purged that can be.
  [[nodiscard]] int take(uint64_t bytes, KernelLabel label, Piece* piece);
  /// The same, of no driver that counts it: vcsm-cma's.
  [[nodiscard]] int take(uint64_t bytes, Piece* piece);
  /// As in debugfs: by label, those that jobs of nobody need, and those that are gone.
  std::string bo_stats() const;
  uint64_t used() const {
    const std::lock_guard lock(mutex_);
    return used_;
  }

 private:
  friend class Object;
  /// A buffer that was purged. It has a file of its own, in which nothing else will ever lie.
  struct Purged {
    Buffer::Backing backing;
    uint64_t bytes;
  };
  int take(uint64_t bytes, Use* use, Piece* piece);
  void give_back(const Piece& piece);
  // Under the lock:
  std::vector<Purged> purge_all();
  void count(Piece* piece, Use* use);
  void uncount(const Piece& piece);
  Use* use_of(const std::string& label);

  const uint64_t bytes_;
  mutable std::mutex mutex_;  // protects all below, and the states of all objects
  uint64_t used_ = 0;
  std::set<Object*> purgeable_;
  std::array<Use, kNumKernelLabels> kernel_labels_;
  std::map<std::string, Use> user_labels_;  // of which there are pieces
  Use purged_;
};

/// What all files that hold a buffer share of it. Thread safe.
class Object : public DriverState {
 public:
  /// @param buffer  which owns this
  Object(std::shared_ptr<ContiguousMemory> memory, Buffer& buffer);
  ~Object() override;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  /// The memory that it takes, of which it gives back what is purged. One that has some keeps that: by the
  /// time a handle may be another object's.
  void keep(ContiguousMemory::Piece piece);
  /// It is a shader BO from now on, and nothing else. Before it has a handle.
  /// @param charge  for what the analysis takes
  void become_shader(std::shared_ptr<const Program> program, Charge charge);
  const std::shared_ptr<const Program>& program() const { return program_; }

  bool is_t_tiled() const { return t_tiled_; }
  void set_t_tiled(bool tiled);
  void set_label(const std::string& label);

  /// A job is going to use it. False: it is marked as not needed, and nothing else uses it.
  bool use();
  void end_use();
  /// GEM_MADVISE. @return whether the contents are still there
  bool advise(bool needed);

  int export_it() override;
  int map_it(int prot) override;

 private:
  friend class ContiguousMemory;
  void update_pool();
  /// Gives the contents up. Under the memory's lock. @return  what is to be emptied, without it
  ContiguousMemory::Purged purge();

  const std::shared_ptr<ContiguousMemory> memory_;
  Buffer& buffer_;
  std::atomic<bool> t_tiled_;
  std::shared_ptr<const Program> program_;
  Charge program_charge_;
  // Under the memory's lock:
  ContiguousMemory::Piece piece_;
  uint64_t uses_ = 0;
  bool needed_ = true, purged_ = false;
  bool exported_ = false;  ///< which is a use without an end
};

}  // namespace v3d::ioctl::vc4
