#include "ioctl/vc4/memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "gpu/base/log.h"

namespace v3d::ioctl::vc4 {

int ContiguousMemory::take(uint64_t bytes, Piece* piece) {
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [&] { return bytes <= bytes_ && used_ <= bytes_ - bytes; };
    if (!fits()) purge_all();
    if (!fits()) return ENOMEM;
    used_ += bytes;
  }
  *piece = Piece(shared_from_this(), bytes);
  return 0;
}

void ContiguousMemory::purge_all() {
  for (Object* object : purgeable_) object->purge();
  purgeable_.clear();
}

Object::~Object() {
  const std::lock_guard lock(memory_->mutex_);
  memory_->purgeable_.erase(this);
  memory_->used_ -= std::exchange(piece_.bytes_, 0);
}

void Object::keep(ContiguousMemory::Piece piece, std::string label) {
  const std::lock_guard lock(memory_->mutex_);
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
  if (uses_ == 0 && (!needed_ || purged_)) return false;
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

void Object::purge() {
  const Buffer::Backing backing = buffer_.backing();
  // The kernel takes mappings away. Here they read zeros, which is what the tests of the kernel's users
  // accept.
  if (fallocate(backing.file->memfd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(backing.offset), static_cast<off_t>(buffer_.size())) != 0)
    log_error("a purged buffer of %d bytes keeps its memory: %s", buffer_.size(), strerrorname_np(errno));
  purged_ = true;
  memory_->used_ -= std::exchange(piece_.bytes_, 0);
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
