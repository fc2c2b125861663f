/// A read-only text is a file without a place that shows what it is given, as sysfs and procfs show a state.
#pragma once

#include "shim/process/raw.h"
#include "shim/process/scratch.h"
#include "shim/process/text.h"

namespace v3d::shim {

/// Memory that a text is written into, handed out open for reading alone.
class ReadOnlyText {
 public:
  ReadOnlyText()
      : fd_(static_cast<int>(raw::call(SYS_memfd_create, raw::word("v3demu-text"), MFD_CLOEXEC))) {}
  ~ReadOnlyText() {
    if (fd_ >= 0) raw::close(fd_);
  }
  ReadOnlyText(const ReadOnlyText&) = delete;
  ReadOnlyText& operator=(const ReadOnlyText&) = delete;

  void add(const void* text, size_t size) { good_ &= raw::write(fd_, text, size) == static_cast<long>(size); }
  /// What stands in a file now. The path is the kernel's.
  void add_file(const char* path) {
    Scratch<char[4096]> part;
    const int source = raw::open(path, O_RDONLY | O_CLOEXEC);
    long got = part.get() ? source : -ENOMEM;
    while (got >= 0 && (got = raw::read(source, part.get(), sizeof(*part.get()))) > 0)
      add(part.get(), static_cast<size_t>(got));
    good_ &= got == 0;
    if (source >= 0) raw::close(source);
  }
  /// A new descriptor; -ENOENT when something went wrong on the way.
  /// @param flags  of open, of which O_CLOEXEC counts
  int open(int flags) const {
    if (fd_ < 0 || !good_) return -ENOENT;
    Text<32> self;
    self.add("/proc/self/fd/").add(static_cast<uint64_t>(static_cast<unsigned>(fd_)));
    return raw::open(self.c_str(), O_RDONLY | (flags & O_CLOEXEC));
  }

 private:
  const int fd_;
  bool good_ = true;
};

}  // namespace v3d::shim
