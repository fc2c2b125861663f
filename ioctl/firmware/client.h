/// What the firmware of a board with VideoCore IV does for a program that runs code on QPUs by itself: memory
/// with bus addresses, and the programs (board-environment.md 6.2, vc4-qpu.md 13).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "ioctl/base/account.h"
#include "ioctl/base/driver_slot.h"
#include "ioctl/core/call.h"
#include "ioctl/firmware/heap.h"
#include "ioctl/firmware/v3d.h"
#include "ioctl/link/firmware.h"
#include "ioctl/memory/bo.h"
#include "ioctl/memory/memory_file.h"
#include "ioctl/vc4/memory.h"

namespace v3d::ioctl::firmware {

/// Of an open file, which stands for a process. Its allocations are in an address space of its own, in which
/// its programs run: there is nothing else that they reach. Addresses are those of a board on which no other
/// process has any. Thread safe. All functions return 0 or an errno.
class Client : public DriverState {
 public:
  /// @param heap  the firmware's  @param shared  of vcsm-cma
  Client(const Heap& heap, const Heap& shared) : heap_(heap), shared_heap_(shared) {}

  /// @param flags  of MEM_FLAG: bits 3:2 choose the alias of the bus address
  /// @param handle  0: the firmware has no such memory
  int allocate(Call& call, uint32_t bytes, uint32_t alignment, uint32_t flags, uint32_t* handle);
  /// @param address  the bus address, from which the memory does not move; 0: no such handle
  int lock(uint32_t handle, uint32_t* address);
  /// @param status  0, or else there is no such handle
  int unlock(uint32_t handle, uint32_t* status);
  int release(uint32_t handle, uint32_t* status);

  /// Memory of Linux' that the firmware knows, too ([R] vc_sm.c, vc_sm_cma_ioctl_alloc). It goes when nobody
  /// but this object has the dma-buf any more, which is looked at when there is to be more of it.
  int allocate_shared(Call& call, uint32_t bytes, uint32_t* address, uint32_t* handle, UniqueFd* dma_buf);

  int enable(Call& call, bool on);
  /// EXECUTE_QPU: starts programs, and waits until they have ended.
  /// @param control  bus address of pairs of words, uniforms and code
  /// @param timeout_ms  of the board's time
  /// @param status  0 or wire::kFirmwareTimeout
  int execute(Call& call, uint32_t programs, uint32_t control, uint32_t timeout_ms, uint32_t* status);

  /// What mmap of /dev/mem maps. EPERM: not all of it is of one allocation.
  int map_memory(uint32_t physical, uint32_t bytes, UniqueFd* memory, uint32_t* offset);
  int map_registers(Call& call, UniqueFd* page);
  int write_register(Call& call, uint32_t offset, uint32_t value);

 private:
  static constexpr uint32_t kAliases = 4;
  struct Charges {
    Charge object, memory, descriptor, mappings;
  };
  struct Block {
    uint32_t address = 0, bytes = 0, flags = 0;
    std::shared_ptr<MemoryFile> file;
    vc4::ContiguousMemory::Piece piece;  ///< of shared memory
    bool shared = false;
    Charges charges;
  };

  static bool charge(Call& call, uint32_t bytes, Charges* charges);
  Heap& heap_of(const Block& block) { return block.shared ? shared_heap_ : heap_; }
  using Blocks = std::map<uint32_t, Block>;
  void drop(Blocks::iterator block);
  bool has_shared() const;
  void drop_abandoned(size_t most);
  bool take_shared(Call& call, Block* block);
  bool add(Block block, uint32_t* handle);
  int make_space(Call& call);
  int make_v3d(Call& call);
  bool map_block(const Block& block, uint32_t aliases);
  void unmap_block(const Block& block, uint32_t aliases);
  bool read_programs(uint32_t count, uint32_t control, std::vector<csd::UserProgram>* programs);
  int push_job(Call& call, bool alone, FencePtr* done);
  bool worth_telling();

  std::mutex mutex_;  // protects all below
  Heap heap_, shared_heap_;
  std::shared_ptr<BoSpace> space_;
  std::shared_ptr<V3d> v3d_;
  Charge v3d_descriptor_, v3d_mapping_, v3d_bytes_;
  Blocks blocks_;  // by handle
  uint32_t last_handle_ = 0, last_looked_at_ = 0;
  uint64_t told_ = 0;
};

/// Answers a request of the protocol. @param memory  what kMap* maps, and the dma-buf of kAllocateShared
int answer(Call& call, const wire::FirmwareRequest& request, wire::FirmwareReply* reply, UniqueFd* memory);

}  // namespace v3d::ioctl::firmware
