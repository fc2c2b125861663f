#include "ioctl/vc4/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/base/log.h"

namespace v3d::ioctl::vc4 {
namespace {

// The layout of a buffer must be known when nobody has a handle of it, but a client a descriptor, perhaps in
// a message under way: all that lives on then is the file. A bit of its mode that means nothing for files
// says it.
constexpr mode_t kTTiled = S_ISVTX, kModes = 07777;

bool is_marked(int file) {
  struct stat info;
  return fstat(file, &info) == 0 && (info.st_mode & kTTiled) != 0;
}

void mark(int file, bool tiled) {
  struct stat info;
  if (fstat(file, &info) != 0) return;
  const mode_t modes = (info.st_mode & kModes & ~kTTiled) | (tiled ? kTTiled : 0);
  if (fchmod(file, modes) != 0) log_error("a buffer may forget its layout: %s", strerrorname_np(errno));
}

/// The kernel takes mappings away. Here they read zeros, which is what the tests of the kernel's users
/// accept.
void empty(const Buffer::Backing& backing, uint64_t size) {
  if (fallocate(backing.file->memfd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(backing.offset), static_cast<off_t>(size)) != 0)
    log_error("a purged buffer of %d bytes keeps its memory: %s", size, strerrorname_np(errno));
}

/// Goes through a container without keeping its lock for all of it: what comes or goes meanwhile is there or
/// not.
/// @param key_of, value_of  of an element, under the lock
/// @param use  of each value, without it
template <typename Container, typename KeyOf, typename ValueOf, typename Fn>
void in_parts(std::mutex& mutex, const Container& container, const KeyOf& key_of, const ValueOf& value_of,
              const Fn& use) {
  constexpr size_t kAtOnce = 256;
  using Key = typename Container::key_type;
  std::optional<Key> last;
  for (bool more = true; more;) {
    std::vector<std::decay_t<decltype(value_of(*container.begin()))>> values;
    {
      const std::lock_guard lock(mutex);
      auto it = last ? container.upper_bound(*last) : container.begin();
      for (; it != container.end() && values.size() < kAtOnce; ++it) {
        values.push_back(value_of(*it));
        last = key_of(*it);
      }
      more = it != container.end();
    }
    for (const auto& value : values) use(value);
  }
}

}  // namespace

Object::Object(std::shared_ptr<ContiguousMemory> memory, Buffer& buffer)
    : memory_(std::move(memory)), buffer_(buffer), t_tiled_(is_marked(buffer.backing().file->memfd.get())) {}

void Object::set_t_tiled(bool tiled) {
  if (t_tiled_.exchange(tiled) != tiled) mark(buffer_.backing().file->memfd.get(), tiled);
}

const char* name_of(KernelLabel label) {
  switch (label) {
    case KernelLabel::kV3d:
      return "V3D";
    case KernelLabel::kShader:
      return "V3D shader";
    case KernelLabel::kDumb:
      return "dumb";
    case KernelLabel::kBinner:
      return "binner";
    case KernelLabel::kBinList:
      return "BCL";
  }
  return "";
}

ContiguousMemory::ContiguousMemory(uint64_t bytes) : bytes_(bytes) {
  for (size_t i = 0; i < kNumKernelLabels; ++i) kernel_labels_[i].name = name_of(KernelLabel(i));
  purged_.name = "total purged BO";
}

int ContiguousMemory::take(uint64_t bytes, KernelLabel label, Piece* piece) {
  return take(bytes, &kernel_labels_[static_cast<size_t>(label)], piece);
}

int ContiguousMemory::take(uint64_t bytes, Piece* piece) { return take(bytes, nullptr, piece); }

int ContiguousMemory::take(uint64_t bytes, Use* use, Piece* piece) {
  Piece taken;
  std::vector<Purged> purged;
  bool fits;
  {
    const std::lock_guard lock(mutex_);
    const auto has_room = [&] { return bytes <= bytes_ && used_ <= bytes_ - bytes; };
    if (!has_room()) purged = purge_all();
    fits = has_room();
    if (fits) {
      used_ += bytes;
      taken.memory_ = shared_from_this();
      taken.bytes_ = taken.size_ = bytes;
      if (use) count(&taken, use);
    }
  }
  // There may be many, and who uses a buffer meanwhile wants the lock.
  for (const Purged& p : purged) empty(p.backing, p.bytes);
  if (!fits) return ENOMEM;
  *piece = std::move(taken);
  return 0;
}

void ContiguousMemory::give_back(const Piece& piece) {
  const std::lock_guard lock(mutex_);
  used_ -= piece.bytes_;
  uncount(piece);
}

void ContiguousMemory::count(Piece* piece, Use* use) {
  piece->use_ = use;
  ++use->number;
  use->bytes += piece->size_;
}

void ContiguousMemory::uncount(const Piece& piece) {
  if (!piece.use_) return;
  Use& use = *piece.use_;
  use.bytes -= piece.size_;
  if (--use.number != 0) return;
  const auto user = user_labels_.find(use.name);
  if (user != user_labels_.end() && &user->second == &use) user_labels_.erase(user);
}

ContiguousMemory::Use* ContiguousMemory::use_of(const std::string& label) {
  for (Use& use : kernel_labels_)
    if (use.name == label) return &use;
  Use& use = user_labels_[label];
  use.name = label;
  return &use;
}

/// [K] vc4_bo.c, vc4_bo_stats_print. There may be as many labels as buffers: others get the lock in between.
std::string ContiguousMemory::bo_stats() const {
  std::string text;
  const auto add = [&](const Use& use) {
    if (use.number != 0)
      absl::StrAppendFormat(&text, "%30s: %6dkb BOs (%d)\n", use.name, use.bytes >> 10, use.number);
  };
  std::array<Use, kNumKernelLabels> of_kernel;
  {
    const std::lock_guard lock(mutex_);
    of_kernel = kernel_labels_;
  }
  for (const Use& use : of_kernel) add(use);
  in_parts(
      mutex_, user_labels_, [](const auto& label) { return label.first; },
      [&](const auto& label) { return label.second; }, add);
  Use unneeded = {.name = "userspace BO cache"};
  const auto size_of = [](const Object* object) { return object->piece_.size_; };
  in_parts(
      mutex_, purgeable_, [](Object* object) { return object; }, size_of,
      [&](uint64_t size) {
        ++unneeded.number;
        unneeded.bytes += size;
      });
  add(unneeded);
  const std::lock_guard lock(mutex_);
  add(purged_);
  return text;
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

void Object::keep(ContiguousMemory::Piece piece) {
  const std::lock_guard lock(memory_->mutex_);
  if (piece_.bytes_ != 0) return;
  std::swap(piece_, piece);
}

void Object::become_shader(std::shared_ptr<const Program> program, Charge charge) {
  program_ = std::move(program);
  program_charge_ = std::move(charge);
}

void Object::set_label(const std::string& label) {
  const std::lock_guard lock(memory_->mutex_);
  if (!piece_.use_) return;  // another thread still makes it
  ContiguousMemory::Use* const use = memory_->use_of(label);
  if (use == piece_.use_) return;
  memory_->uncount(piece_);
  memory_->count(&piece_, use);
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
  ++memory_->purged_.number;
  memory_->purged_.bytes += piece_.size_;
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
