/// The driver vc4 keeps this for the device and for each open file (vc4-abi.md 6.1).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ioctl/base/driver_slot.h"
#include "ioctl/core/call.h"
#include "ioctl/sync/fence.h"
#include "ioctl/vc4/memory.h"

namespace v3d::ioctl::vc4 {

/// Thread safe.
class Device : public DriverState {
 public:
  explicit Device(uint64_t memory) : memory_(std::make_shared<ContiguousMemory>(memory)) {}

  const std::shared_ptr<ContiguousMemory>& memory() const { return memory_; }
  /// The binner's memory, which is there as long as somebody holds it. 0 or ENOMEM.
  int binner_memory(std::shared_ptr<ContiguousMemory::Piece>* binner);

  /// Jobs of all files count from 1.
  uint64_t issue_seqno();
  uint64_t issued() const;
  /// Is notified when that job has been issued. False, and it is not kept, when it has been.
  bool watch(const std::shared_ptr<Watcher>& watcher, uint64_t seqno);
  void unwatch(const Watcher* watcher, uint64_t seqno);

 private:
  const std::shared_ptr<ContiguousMemory> memory_;
  mutable std::mutex mutex_;  // protects all below
  std::weak_ptr<ContiguousMemory::Piece> binner_;
  uint64_t issued_ = 0;
  std::multimap<uint64_t, std::shared_ptr<Watcher>> watchers_;  // by seqno
};

/// Of an open file. Thread safe.
class Client : public DriverState {
 public:
  /// Its jobs end in their order, which its clients rely on.
  uint64_t context() const { return context_; }
  /// The first BO of a file makes the binner's memory. 0 or ENOMEM.
  int hold_binner_memory(Device& device);
  /// The fence of its next job, with the job's seqno.
  FencePtr next_fence(Device& device);
  /// Of its jobs up to that one that have not ended.
  std::vector<FencePtr> unfinished(uint64_t seqno);
  /// What the firmware does for the file's process.
  DriverSlot& firmware() { return firmware_; }
  /// Whether one more refusal is worth a line.
  bool says_refusal() { return worth_a_line(++refusals_); }

 private:
  const uint64_t context_ = new_fence_context();
  DriverSlot firmware_;
  std::atomic<uint64_t> refusals_{0};
  std::mutex mutex_;  // protects all below
  std::shared_ptr<ContiguousMemory::Piece> binner_;
  std::deque<FencePtr> unfinished_;  // by seqno
};

/// Of a board with that driver.
Device& device_of(Kernel& kernel);
Device& device_of(Call& call);
Client& client_of(Call& call);
Object& object_of(Call& call, const Bo& bo);

}  // namespace v3d::ioctl::vc4
