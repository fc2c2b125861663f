/// These functions say which paths lie in the device tree. A "virtual" path is what the application means:
/// /dev/dri/card0.
#pragma once

#include <fcntl.h>

#include "shim/process/text.h"
#include "shim/tree/tree.h"

namespace v3d::shim {

enum class Purpose {
  kLookup,  ///< of the object itself: merged folders are the host's
  kList,    ///< of a folder's entries: merged folders are the overlay
};

/// A path argument, where it really leads. Use dir() and path() in place of what the caller gave.
class Rewritten {
 public:
  /// Resolves `path` relative to `dir` (a descriptor or AT_FDCWD).
  Rewritten(int dir, const char* path, Purpose purpose);
  explicit Rewritten(const char* path, Purpose purpose = Purpose::kLookup)
      : Rewritten(AT_FDCWD, path, purpose) {}

  /// The caller gave a path that can be read. If not, the kernel says so when path() is passed on.
  bool readable() const { return readable_; }
  /// The path leads into the tree.
  bool ours() const { return tree_; }
  const Tree* tree() const { return tree_; }
  int dir() const { return dir_; }
  const char* path() const { return path_; }
  /// Which node the path leads to, through symbolic links unless `no_follow`. nullptr: none.
  const Node* node(bool no_follow = false) const;

 private:
  [[gnu::noinline]] void resolve(Purpose purpose);

  int dir_;
  const char* path_;
  bool readable_;
  const Tree* tree_ = nullptr;
  Path buffer_;
};

/// Text of /proc/self/fd/<fd> without a zero after it. 0: there is none, or it does not fit.
size_t read_descriptor_path(int fd, char* text, size_t capacity);
/// The same; empty if there is none.
template <size_t N>
void descriptor_path(int fd, Text<N>* out) {
  out->set_size(read_descriptor_path(fd, out->data(), N));
}

/// A path that the kernel or libc gave, as the application shall see it: without the tree's folder in front.
/// Moves the text to the front in place and returns its length.
size_t show_virtual(char* path);

/// The folder that the application works in changed: relative paths may lead to the tree from now on.
void note_working_directory();

}  // namespace v3d::shim
