#include "ioctl/firmware/client.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <csignal>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gpu/base/log.h"
#include "gpu/chip/board.h"
#include "gpu/mmu/address_space.h"
#include "ioctl/core/gpu_run.h"
#include "ioctl/vc4/device.h"

namespace v3d::ioctl::firmware {
namespace {

constexpr uint32_t kPage = mmu::kPageSize;
/// The upper two bits of a bus address say through which caches it goes; all four reach the same memory.
constexpr uint32_t kAlias = 1u << 30;
/// What fits into no queue need not be read.
constexpr uint32_t kMostPrograms = 64;
/// Of the QPUs' registers and queues, the VPM, and the page.
constexpr uint64_t kV3dBytes = 256 << 10;

/// By bits 3:2 of the flags: normal, direct, coherent, both (Mailbox-property-interface, "Allocate memory").
constexpr uint32_t kAliasOfFlags[] = {0, 3, 2, 1};

uint32_t bus_address(uint32_t physical, uint32_t flags) {
  return physical | kAliasOfFlags[flags >> 2 & 3] * kAlias;
}

/// To whole pages.
uint64_t rounded_up(uint32_t bytes) { return (uint64_t{bytes} + kPage - 1) / kPage * kPage; }

const chip::Board* board_of(Kernel& kernel) {
  const chip::Board* board = chip::find_board(kernel.gpu().profile().name);
  return board && board->soc->peripherals ? board : nullptr;
}

/// Another open file of the same memory, which the kernel counts.
UniqueFd open_again(int memfd) {
  return UniqueFd(open(("/proc/self/fd/" + std::to_string(memfd)).c_str(), O_RDWR | O_CLOEXEC));
}

/// Whether no other file is open of that memory, nor mapped by one that was: then it can be leased. A file
/// that opens meanwhile ends the lease with a signal that nobody hears.
bool is_held_here_alone(int fd) {
  if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return false;
  fcntl(fd, F_SETLEASE, F_UNLCK);
  return true;
}

/// A tenth of a second in all.
constexpr int kTriesForRoom = 20;
constexpr std::chrono::milliseconds kTimeForRoom{5};

const char* user_name(const Call& call) { return call.file.client()->program.c_str(); }

}  // namespace

/// Under the lock.
bool Client::worth_telling() { return worth_a_line(++told_); }

int Client::make_space(Call& call) {
  if (!space_) space_ = call.file.bo_space(call.account);
  return space_ ? 0 : ENOMEM;
}

int Client::make_v3d(Call& call) {
  if (v3d_) return 0;
  Charge descriptor, mapping, bytes;
  if (call.account.charge(Resource::kDescriptors, 1, &descriptor) != 0 ||
      call.account.charge(Resource::kMappings, 1, &mapping) != 0 ||
      call.account.charge(Resource::kBoBytes, kV3dBytes, &bytes) != 0)
    return ENOMEM;
  v3d_ = V3d::create(call.kernel.gpu().profile());
  if (!v3d_) return ENOMEM;
  v3d_descriptor_ = std::move(descriptor);
  v3d_mapping_ = std::move(mapping);
  v3d_bytes_ = std::move(bytes);
  return 0;
}

void Client::unmap_block(const Block& block, uint32_t aliases) {
  for (uint32_t alias = 0; alias < aliases; ++alias)
    if (!space_->gpu().space().unmap(block.address + alias * kAlias, block.bytes))
      log_error("the host refuses to unmap [%#x, +%#x): programs of this client still reach it",
                block.address + alias * kAlias, block.bytes);
}

bool Client::map_block(const Block& block, uint32_t aliases) {
  for (uint32_t alias = 0; alias < aliases; ++alias) {
    if (block.file->map(space_->gpu().space(), block.address + alias * kAlias, 0, block.bytes)) continue;
    unmap_block(block, alias);
    return false;
  }
  return true;
}

/// Of a block.
bool Client::charge(Call& call, uint32_t bytes, Charges* charges) {
  return call.account.charge(Resource::kBos, 1, &charges->object) == 0 &&
         call.account.charge(Resource::kBoBytes, bytes, &charges->memory) == 0 &&
         call.account.charge(Resource::kDescriptors, 1, &charges->descriptor) == 0 &&
         call.account.charge(Resource::kMappings, kAliases * kBoMappings, &charges->mappings) == 0;
}

/// @param block  its address goes back to its heap where the host refuses
bool Client::add(Block block, uint32_t* handle) {
  if (!block.file || !map_block(block, kAliases)) {
    heap_of(block).give_back(block.address);
    return false;
  }
  *handle = ++last_handle_;
  blocks_[*handle] = std::move(block);
  return true;
}

void Client::drop(Blocks::iterator block) {
  unmap_block(block->second, kAliases);
  heap_of(block->second).give_back(block->second.address);
  blocks_.erase(block);
}

int Client::allocate(Call& call, uint32_t bytes, uint32_t alignment, uint32_t flags, uint32_t* handle) {
  *handle = 0;
  const uint64_t rounded = rounded_up(bytes);
  if (bytes == 0 || rounded > 1u << 30 || alignment > 1u << 30) return 0;
  Block block;
  block.bytes = static_cast<uint32_t>(rounded);
  block.flags = flags;
  if (!charge(call, block.bytes, &block.charges)) return 0;
  const std::lock_guard lock(mutex_);
  if (make_space(call) != 0) return 0;
  const auto address = heap_.take(block.bytes, std::bit_ceil(std::max(alignment, kPage)));
  if (!address) {
    if (worth_telling())
      log_warning("the firmware has no %d bytes left for %s (pid %d): it keeps %d MiB (V3DEMU_GPU_MEM)",
                  bytes, user_name(call), call.file.client()->pid, (heap_.end() - heap_.begin()) >> 20);
    return 0;
  }
  block.address = *address;
  block.file = MemoryFile::create("v3demu-bo", block.bytes);
  add(std::move(block), handle);
  return 0;
}

/// @param most  so many are looked at, next time the ones behind them
void Client::drop_abandoned(size_t most) {
  for (size_t left = std::min(most, blocks_.size()); left > 0; --left) {
    auto block = blocks_.upper_bound(last_looked_at_);
    if (block == blocks_.end()) block = blocks_.begin();
    last_looked_at_ = block->first;
    if (block->second.shared && is_held_here_alone(block->second.file->memfd.get())) drop(block);
  }
}

bool Client::has_shared() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const auto& block) { return block.second.shared; });
}

/// From the heap and of what Linux has for all.
bool Client::take_shared(Call& call, Block* block) {
  const auto address = shared_heap_.take(block->bytes, kPage);
  if (!address) return false;
  Charges charges;
  if (!charge(call, block->bytes, &charges) ||
      vc4::device_of(call).memory()->take(block->bytes, &block->piece) != 0) {
    shared_heap_.give_back(*address);
    return false;
  }
  block->address = *address;
  block->charges = std::move(charges);
  return true;
}

int Client::allocate_shared(Call& call, uint32_t bytes, uint32_t* address, uint32_t* handle,
                            UniqueFd* dma_buf) {
  const uint64_t rounded = rounded_up(bytes);
  if (rounded == 0 || rounded > UINT32_MAX) return EINVAL;  // the kernel's rounding wraps to 0
  Block block;
  block.bytes = static_cast<uint32_t>(rounded);
  // The alias through which Linux hands out addresses for DMA ([R] bcm2708.dtsi, bcm2709.dtsi).
  block.flags = board_of(call.kernel)->soc->peripherals == chip::kBcm2835.peripherals ? 2 << 2 : 1 << 2;
  block.shared = true;
  std::unique_lock lock(mutex_);
  constexpr size_t kLookedAt = 16;
  drop_abandoned(kLookedAt);
  if (make_space(call) != 0) return ENOMEM;
  for (int tries = 0; !take_shared(call, &block); ++tries) {
    // What the client has closed may be on its way still: in a message, or with a thread that closes.
    if (tries == kTriesForRoom || !has_shared()) return ENOMEM;
    if (tries > 0) {
      lock.unlock();
      std::this_thread::sleep_for(kTimeForRoom);
      lock.lock();
    }
    drop_abandoned(blocks_.size());
  }
  const auto file = MemoryFile::create("v3demu-bo", block.bytes);
  UniqueFd own = file ? open_again(file->memfd.get()) : UniqueFd();
  if (file) *dma_buf = open_again(file->memfd.get());
  if (own && *dma_buf) block.file = std::make_shared<MemoryFile>(MemoryFile{std::move(own), file->key});
  *address = bus_address(block.address, block.flags);
  return add(std::move(block), handle) ? 0 : ENOMEM;
}

int Client::lock(uint32_t handle, uint32_t* address) {
  const std::lock_guard lock(mutex_);
  const auto it = blocks_.find(handle);
  *address = it == blocks_.end() ? 0 : bus_address(it->second.address, it->second.flags);
  return 0;
}

int Client::unlock(uint32_t handle, uint32_t* status) {
  const std::lock_guard lock(mutex_);
  *status = blocks_.count(handle) ? 0 : ~0u;
  return 0;
}

int Client::release(uint32_t handle, uint32_t* status) {
  const std::lock_guard lock(mutex_);
  const auto it = blocks_.find(handle);
  *status = it == blocks_.end() ? ~0u : 0;
  if (it == blocks_.end()) return 0;
  drop(it);
  return 0;
}

int Client::enable(Call& call, bool on) {
  const std::lock_guard lock(mutex_);
  if (make_v3d(call) != 0 || make_space(call) != 0) return ENOMEM;
  v3d_->set_power(on);
  return 0;
}

bool Client::read_programs(uint32_t count, uint32_t control, std::vector<csd::UserProgram>* programs) {
  const mmu::AddressSpace& space = space_->gpu().space();
  struct Pair {
    uint32_t uniforms, code;
  };
  for (uint32_t n = 0; n < count; ++n) {
    const GpuAddr at = (control & ~3u) + n * static_cast<uint32_t>(sizeof(Pair));
    if (!space.is_mapped(at) || !space.is_mapped(at + sizeof(Pair) - 1)) return false;
    const auto pair = space.memory().load<Pair>(at);
    programs->push_back({pair.code, pair.uniforms, 0, 0});
  }
  return true;
}

int Client::push_job(Call& call, bool alone, FencePtr* done) {
  const auto job = std::make_shared<Job>(Queue::kCsd);
  if (const int error = call.account.charge(Resource::kJobs, 1, &job->charge)) return error;
  job->client = call.file.client();
  job->user = job->client->user();
  job->space = space_;
  const std::function<device::JobResult(JobControl&)> run = [v3d = v3d_, space = space_,
                                                             alone](JobControl& control) {
    return v3d->run(space->gpu(), alone, control);
  };
  job->run = [&kernel = call.kernel, self = job.get(), run](JobControl& control) {
    return run_on_gpu(kernel, *self, run, control);
  };
  const std::lock_guard lock(call.file.submit_mutex);
  job->done = call.file.next_fence(Queue::kCsd);
  try {
    call.kernel.host().push({job});
  } catch (const std::bad_alloc&) {
    job->done->signal(ENOMEM);
    throw;
  }
  *done = job->done;
  return 0;
}

int Client::execute(Call& call, uint32_t count, uint32_t control, uint32_t timeout_ms, uint32_t* status) {
  *status = wire::kFirmwareTimeout;
  uint64_t batch = 0;
  FencePtr done;
  std::shared_ptr<V3d> v3d;
  {
    const std::lock_guard lock(mutex_);
    std::vector<csd::UserProgram> programs;
    const char* wrong = !v3d_ || !v3d_->has_power() ? "QPUs without power (SET_ENABLE_QPU)"
                        : count > kMostPrograms     ? "more programs than the queue holds"
                        : !read_programs(count, control, &programs)
                            ? "the list of programs is not in its memory"
                            : nullptr;
    if (wrong) {
      if (worth_telling())
        log_error("EXECUTE_QPU of %s (pid %d) is refused: %s", user_name(call), call.file.client()->pid,
                  wrong);
      return 0;
    }
    v3d = v3d_;
    const double rate = call.kernel.gpu().profile().qpu_rate();
    for (csd::UserProgram& program : programs)
      program.most_instructions = static_cast<uint64_t>(rate * timeout_ms / 1000);
    if (!v3d->enqueue(programs, &batch)) {
      if (worth_telling())
        log_error("EXECUTE_QPU of %s (pid %d) is refused: more programs than the queue holds",
                  user_name(call), call.file.client()->pid);
      return 0;
    }
    const int error = out_of_memory_is_enomem([&] { return push_job(call, true, &done); });
    if (error) {
      v3d->finish(batch);
      return error;
    }
  }
  const int error = wait_for_all({done}, call.waiter, INT64_MAX);
  if (v3d->finish(batch) && !error) *status = 0;
  return error;
}

int Client::map_memory(uint32_t physical, uint32_t bytes, UniqueFd* memory, uint32_t* offset) {
  const uint64_t begin = physical, end = begin + rounded_up(bytes);
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, block] : blocks_) {
    if (begin < block.address || end > uint64_t{block.address} + block.bytes) continue;
    memory->reset(fcntl(block.file->memfd.get(), F_DUPFD_CLOEXEC, 0));
    *offset = physical - block.address;
    return *memory ? 0 : EMFILE;
  }
  return EPERM;
}

int Client::map_registers(Call& call, UniqueFd* page) {
  const std::lock_guard lock(mutex_);
  if (make_v3d(call) != 0) return ENOMEM;
  page->reset(fcntl(v3d_->memfd(), F_DUPFD_CLOEXEC, 0));
  return *page ? 0 : EMFILE;
}

int Client::write_register(Call& call, uint32_t offset, uint32_t value) {
  const std::lock_guard lock(mutex_);
  if (!v3d_ || offset % 4 != 0 || offset >= wire::kRegisterMark) return EINVAL;
  switch (v3d_->write(offset, value)) {
    case V3d::After::kNothing:
      return 0;
    case V3d::After::kUnknown:
      return EINVAL;
    case V3d::After::kRun:
      break;
  }
  FencePtr done;
  const int error =
      make_space(call) != 0 ? ENOMEM : out_of_memory_is_enomem([&] { return push_job(call, false, &done); });
  if (error) v3d_->drop_waiting();
  return error;
}

int answer(Call& call, const wire::FirmwareRequest& request, wire::FirmwareReply* reply, UniqueFd* memory) {
  using wire::FirmwareCall;
  const chip::Board* board = board_of(call.kernel);
  if (!board || call.file.device().driver != DrmDevice::Driver::kVc4) return ENODEV;
  const Heap heap = Heap::of(*board, request.kept_mib ? request.kept_mib : board->firmware_mib());
  auto& client = vc4::client_of(call).firmware().get<Client>(
      heap, Heap::below(heap, call.kernel.gpu().vc4_board()->memory));
  const uint32_t(&w)[3] = request.words;
  switch (request.call) {
    case FirmwareCall::kAllocate:
      return client.allocate(call, w[0], w[1], w[2], &reply->word);
    case FirmwareCall::kLock:
      return client.lock(w[0], &reply->word);
    case FirmwareCall::kUnlock:
      return client.unlock(w[0], &reply->word);
    case FirmwareCall::kRelease:
      return client.release(w[0], &reply->word);
    case FirmwareCall::kEnable:
      return client.enable(call, w[0] != 0);
    case FirmwareCall::kExecute:
      return client.execute(call, w[0], w[1], w[2], &reply->word);
    case FirmwareCall::kMapMemory:
      return client.map_memory(w[0], w[1], memory, &reply->word);
    case FirmwareCall::kMapRegisters:
      return client.map_registers(call, memory);
    case FirmwareCall::kWriteRegister:
      return client.write_register(call, w[0], w[1]);
    case FirmwareCall::kAllocateShared:
      return client.allocate_shared(call, w[0], &reply->word, &reply->handle, memory);
  }
  return EPROTO;
}

}  // namespace v3d::ioctl::firmware
