#include "shim/tree/tree_sink.h"

#include "shim/process/raw.h"
#include "shim/process/text.h"

namespace v3d::shim {

void TreeSink::mix(const char* data, size_t size) {  // FNV-1a
  for (size_t i = 0; i < size; ++i) hash_ = (hash_ ^ static_cast<unsigned char>(data[i])) * 0x100000001b3u;
}

void TreeSink::mix(const char* text) { mix(text, strlen(text) + 1); }

void TreeSink::note(long result, long harmless) {
  if (result < 0 && result != harmless && !error_) error_ = static_cast<int>(-result);
}

void TreeSink::make_parents(const char* path) {
  Path folder;
  for (const char* slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
    folder.clear();
    folder.add(path, static_cast<size_t>(slash - path));
    note(raw::mkdirat(root_, folder.c_str(), 0755), -EEXIST);
  }
}

void TreeSink::file(const char* path, const char* content, mode_t mode) {
  bytes(path, content, strlen(content), mode);
}

void TreeSink::bytes(const char* path, const char* content, size_t size, mode_t mode) {
  char kind[] = {'f', static_cast<char>('0' + (mode >> 6 & 7)), static_cast<char>('0' + (mode & 7)), '\0'};
  mix(kind);
  mix(path);
  mix(content, size);
  mix("");
  if (root_ < 0) return;
  make_parents(path);
  int fd = raw::openat(root_, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  note(fd);
  if (fd < 0) return;
  if (size) note(raw::write(fd, content, size));
  note(raw::call(SYS_fchmod, fd, mode));  // whatever the umask is
  raw::close(fd);
}

void TreeSink::link(const char* path, const char* target) {
  mix("l");
  mix(path);
  mix(target);
  if (root_ < 0) return;
  make_parents(path);
  // Up from the last folder that the two paths share, as sysfs and udev write it.
  size_t shared = 0;
  for (size_t i = 0; path[i] && path[i] == target[i]; ++i) {
    if (path[i] == '/') shared = i + 1;
  }
  Path text;
  for (const char* slash = strchr(path + shared, '/'); slash; slash = strchr(slash + 1, '/')) text.add("../");
  text.add(target + shared);
  note(raw::symlinkat(text.c_str(), root_, path));
}

}  // namespace v3d::shim
