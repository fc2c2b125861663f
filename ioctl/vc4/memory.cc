#include "ioctl/vc4/memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "gpu/base/log.h"

namespace v3d::ioctl::vc4 {
namespace {

/// The kernel takes mappings away. Here they read zeros, which is what the tests of the kernel's users
/// accept.
void empty(const Buffer::Backing& backing, uint64_t size) {
  if (fallocate(backing.file->memfd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(backing.offset), static_cast<off_t>(size)) != 0)
    log_error("a purged buffer of %d bytes keeps its memory: %s", size, strerrorname_np(errno));
}

}  // namespace

int ContiguousMemory::take(uint64_t bytes, Piece* piece) {
  std::vector<Purged> purged;
  bool fits;
  {
    const std::lock_guard lock(mutex_);
    const auto has_room = [&] { return bytes <= bytes_ && used_ <= bytes_ - bytes; };
    if (!has_room()) purged = purge_all();
    fits = has_room();
    if (fits) used_ += bytes;
  }
  // There may be many, and who uses a buffer meanwhile wants the lock.
  for (const Purged& p : purged) empty(p.backing, p.bytes);
  if (!fits) return ENOMEM;
  *piece = Piece(shared_from_this(), bytes);
  return 0;
}

std::vector<ContiguousMemory::Purged> ContiguousMemory::purge_all() {
  std::vector<Purged> purged;
  purged.reserve(purgeable_.size());
  for (Object* object : purgeable_) purged.push_back(object->purge());
  purgeable_.clear();
  return purged;
}

Object::~Object() {
  const std::lock_guard lock(memory_->mutex_);
  memory_->purgeable_.erase(this);
  memory_->used_ -= std::exchange(piece_.bytes_, 0);
}

void Object::keep(ContiguousMemory::Piece piece, std::string label) {
  const std::lock_guard lock(memory_->mutex_);
  if (piece_.bytes_ != 0) return;
  std::swap(piece_, piece);
  label_ = std::move(label);
}

void Object::become_shader(std::shared_ptr<const Program> program, Charge charge) {
  program_ = std::move(program);
  program_charge_ = std::move(charge);
}

std::string Object::label() const {
  const std::lock_guard lock(memory_->mutex_);
  return label_;
}

void Object::set_label(std::string label) {
  const std::lock_guard lock(memory_->mutex_);
  label_.swap(label);
}

void Object::update_pool() {
  if (!needed_ && uses_ == 0 && !purged_ && !exported_)
    memory_->purgeable_.insert(this);
  else
    memory_->purgeable_.erase(this);
}

bool Object::use() {
  const std::lock_guard lock(memory_->mutex_);
  if (uses_ == 0 && !exported_ && (!needed_ || purged_)) return false;
  ++uses_;
  return true;
}

void Object::end_use() {
  const std::lock_guard lock(memory_->mutex_);
  --uses_;
  update_pool();
}

bool Object::advise(bool needed) {
  const std::lock_guard lock(memory_->mutex_);
  needed_ = needed;
  update_pool();
  return !purged_;
}

ContiguousMemory::Purged Object::purge() {
  purged_ = true;
  memory_->used_ -= std::exchange(piece_.bytes_, 0);
  return {buffer_.backing(), buffer_.size()};
}

int Object::export_it() {
  if (program_) return EINVAL;
  const std::lock_guard lock(memory_->mutex_);
  if (!needed_ || purged_) return EINVAL;
  exported_ = true;
  return 0;
}

int Object::map_it(int prot) {
  if (program_ && (prot & PROT_WRITE)) return EINVAL;
  const std::lock_guard lock(memory_->mutex_);
  return needed_ && !purged_ ? 0 : EINVAL;
}

}  // namespace v3d::ioctl::vc4
