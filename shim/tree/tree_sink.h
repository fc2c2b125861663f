/// A TreeSink receives a device tree entry by entry; it hashes it and, with a root folder, writes it.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace v3d::shim {

/// Paths are relative to the root of the tree. Parent folders come into being by themselves.
class TreeSink {
 public:
  TreeSink() = default;
  explicit TreeSink(int root) : root_(root) {}

  void file(const char* path, const char* content, mode_t mode = 0444);
  /// The same with zeros in it.
  void bytes(const char* path, const char* content, size_t size, mode_t mode = 0444);
  /// `target` counts from the root of the tree like `path`; the link itself is relative.
  void link(const char* path, const char* target);

  /// Of everything received so far. Another content has another hash and so another folder: no process ever
  /// sees its tree change.
  uint64_t hash() const { return hash_; }
  /// 0 or the first positive errno of the writing.
  int error() const { return error_; }

 private:
  void mix(const char* text);
  void mix(const char* data, size_t size);
  void note(long result, long harmless = 0);
  void make_parents(const char* path);

  int root_ = -1;
  int error_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace v3d::shim
