#include "shim/board/shared_memory.h"

#include <atomic>

#include "shim/board/firmware_calls.h"
#include "shim/process/config.h"
#include "shim/process/raw.h"
#include "shim/process/user_descriptors.h"
#include "shim/process/user_memory.h"

namespace v3d::shim {
namespace {

/// [R] include/linux/broadcom/vc_sm_cma_ioctl.h. Of a request the driver looks at the number alone.
constexpr uint32_t kAllocate = 0x5a, kImport = 0x5b;
struct Allocation {
  uint32_t size, num, cached, pad;
  char name[32];
  int32_t handle;  ///< a dma-buf
  uint32_t vc_handle;
  uint64_t dma_addr;
};
static_assert(sizeof(Allocation) == 64);

/// The same driver's vc_sm_cma_ioctl_alloc: number, caching and name change nothing that is seen here.
int allocate(uint64_t argument) {
  Allocation a;
  if (!copy_from_user(&a, argument, sizeof(a))) return -EFAULT;
  int dma_buf;
  uint32_t address;
  const int error =
      call_firmware(wire::FirmwareCall::kAllocateShared, a.size, 0, 0, &address, &dma_buf, &a.vc_handle);
  if (error) return error;
  a.handle = give_descriptor(dma_buf, true);
  if (a.handle < 0) return a.handle;
  a.dma_addr = address;
  if (copy_to_user(argument, &a, sizeof(a))) return 0;
  withdraw_descriptor(a.handle);
  return -EFAULT;
}

}  // namespace

int shared_memory_ioctl(uint32_t request, uint64_t argument) {
  const uint32_t number = request & 0xff;
  if (number == kAllocate) return allocate(argument);
  static std::atomic<bool> told{false};
  if (number == kImport && !told.exchange(true))
    complain("/dev/vcsm-cma: not implemented: to import dma-bufs (VC_SM_CMA_CMD_IMPORT_DMABUF)");
  return -EINVAL;
}

}  // namespace v3d::shim
