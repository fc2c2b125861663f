#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "gpu/base/log.h"
#include "ioctl/memory/bo.h"

namespace v3d::ioctl {
namespace {

/// Copies what is not zero, so that untouched memory stays untouched.
bool copy(const MemoryFile& from, uint64_t offset, const MemoryFile& to, uint64_t size) {
  std::array<uint8_t, mmu::kPageSize> page;
  for (uint64_t at = 0; at < size; at += page.size()) {
    if (pread(from.memfd.get(), page.data(), page.size(), static_cast<off_t>(offset + at)) !=
        static_cast<ssize_t>(page.size()))
      return false;
    if (std::all_of(page.begin(), page.end(), [](uint8_t byte) { return byte == 0; })) continue;
    if (pwrite(to.memfd.get(), page.data(), page.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(page.size()))
      return false;
  }
  return true;
}

}  // namespace

BoSpace::BoSpace(std::unique_ptr<GpuContext> gpu, const BoAlignment& alignment,
                 std::shared_ptr<MemoryUse> use, BoSpaceCharges charges)
    : charges_(std::move(charges)), gpu_(std::move(gpu)), use_(std::move(use)), va_(alignment) {
  if (gpu_) slabs_.emplace(gpu_->space(), va_);
}

void BoSpace::note_use() { use_->retired_bytes = slabs_->retired_bytes(); }

BoSpace::HostUse BoSpace::host_use() const {
  const std::lock_guard lock(mutex_);
  return {gpu_->space().host_mappings(), slabs_->slabs()};
}

int BoSpace::map(const Buffer& buffer, Placement* placement) {
  const std::lock_guard lock(mutex_);
  auto place = va_.allocate(buffer.size());
  if (!place && slabs_->trim()) place = va_.allocate(buffer.size());
  if (!place) return ENOSPC;
  *placement = {*place, {}};
  if (buffer.backing().file->map(gpu_->space(), *place, 0, buffer.size())) return 0;
  va_.release(*place, buffer.size());
  return ENOMEM;
}

void BoSpace::unmap(Buffer& buffer, const Placement& placement) {
  const std::lock_guard lock(mutex_);
  if (placement.piece.slab && buffer.in_slab()) {
    slabs_->release(placement.piece, buffer.client_mapped(), std::move(buffer.charges_.bytes));
    return note_use();
  }
  // A whole mapping can be taken back however many there are.
  if (!gpu_->space().unmap(placement.address, buffer.size()))
    log_error("the host refuses to unmap [%#x, +%#x): jobs of this client still reach it", placement.address,
              buffer.size());
  if (placement.piece.slab)
    slabs_->release_address(placement.piece);
  else
    va_.try_release(placement.address, buffer.size());
}

void BoSpace::settle() {
  const std::lock_guard lock(mutex_);
  slabs_->settle();
}

std::shared_ptr<Buffer> BoSpace::create_small(BufferTable& table, Account& account, Charge* bytes,
                                              bool in_need, Placement* placement) {
  const std::lock_guard lock(mutex_);
  const uint64_t size = bytes->amount();
  const auto piece = slabs_->allocate(account, size, in_need);
  if (!piece) return nullptr;
  *placement = {piece->address, *piece};
  note_use();
  try {
    auto buffer =
        std::make_shared<Buffer>(SlabPool::file(*piece), SlabPool::offset(*piece), size, true, &table);
    buffer->charges_.bytes = std::move(*bytes);
    return buffer;
  } catch (const std::bad_alloc&) {
    slabs_->release(*piece, false, {});
    throw;
  }
}

int BoSpace::move_out(Account& account, const std::shared_ptr<Buffer>& buffer, const Placement& placement,
                      Charge* mappings, MovedMemory* moved) {
  const std::lock_guard lock(mutex_);
  if (!buffer->in_slab()) return 0;
  BufferCharges charges;
  Charge own_mappings;
  if (account.charge(Resource::kBoBytes, buffer->size(), &charges.bytes) != 0 ||
      account.charge(Resource::kDescriptors, 1, &charges.descriptor) != 0 ||
      account.charge(Resource::kMappings, kBoMappings, &own_mappings) != 0)
    return ENOMEM;
  const Buffer::Backing old = buffer->backing();
  const auto file = MemoryFile::create("v3demu-bo", buffer->size());
  UniqueFd for_client(file ? fcntl(file->memfd.get(), F_DUPFD_CLOEXEC, 0) : -1);
  if (!for_client || !copy(*old.file, old.offset, *file, buffer->size()) ||
      !file->map(gpu_->space(), placement.address, 0, buffer->size()))
    return ENOMEM;
  bool was_mapped;
  {
    const std::lock_guard buffer_lock(buffer->mutex_);
    was_mapped = buffer->client_mapped_;
    buffer->backing_ = {file, 0};
    buffer->in_slab_ = false;
  }
  buffer->table_->add(buffer);
  *moved = {old.file->key, old.offset, buffer->size(), was_mapped ? std::move(for_client) : UniqueFd()};
  slabs_->move_out(placement.piece, was_mapped, std::move(buffer->charges_.bytes));
  buffer->charges_ = std::move(charges);
  *mappings = std::move(own_mappings);
  note_use();
  return 0;
}

}  // namespace v3d::ioctl
