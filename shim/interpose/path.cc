/// Calls that only need another path: access, readlink, realpath, extended attributes, inotify, chdir.

#include <cstdlib>

#include "shim/interpose/interpose.h"
#include "shim/interpose/open_nodes.h"
#include "shim/process/raw.h"
#include "shim/tree/paths.h"

namespace v3d::shim {
namespace {

using Access = int(const char*, int);
using ReadLink = ssize_t(const char*, char*, size_t);
using GetAttribute = ssize_t(const char*, const char*, void*, size_t);
using ListAttributes = ssize_t(const char*, char*, size_t);

/// "/proc/self/fd/5" of something in the tree, or of a DRM file, shows the virtual path.
ssize_t show_descriptor(const char* link, char* text, size_t size, ssize_t length) {
  if (length <= 0 || !starts_with(link, "/proc/") || !strstr(link, "/fd/")) return length;
  Path whole;
  long full = raw::readlinkat(AT_FDCWD, link, whole.data(), Path::capacity() - 1);
  if (full <= 0) return length;
  whole.set_size(static_cast<size_t>(full));
  if (starts_with(whole.c_str(), "socket:") || starts_with(whole.c_str(), "/memfd:v3demu-")) {
    constexpr char kSelf[] = "/proc/self/fd/";
    const int fd = starts_with(link, kSelf) ? atoi(link + sizeof(kSelf) - 1) : -1;
    struct stat st;
    const Node* node = fd >= 0 && raw::fstat(fd, &st) == 0 ? find_open_node(fd, st) : nullptr;
    if (!node) return length;
    whole.clear();
    whole.add("/dev/").add(node->name);
  } else if (!path_in_tree(whole.c_str())) {
    return length;
  }
  size_t shown = show_virtual(whole.data());
  if (shown > size) shown = size;
  memcpy(text, whole.c_str(), shown);
  return static_cast<ssize_t>(shown);
}

ssize_t read_link(const char* path, char* text, size_t size) {
  Rewritten to(path);
  ssize_t length = V3D_NEXT(ReadLink, "readlink")(to.path(), text, size);
  return to.ours() ? length : show_descriptor(path, text, size, length);
}

ssize_t read_link_at(int dir, const char* path, char* text, size_t size) {
  using ReadLinkAt = ssize_t(int, const char*, char*, size_t);
  Rewritten to(dir, path, Purpose::kLookup);
  ssize_t length = V3D_NEXT(ReadLinkAt, "readlinkat")(to.dir(), to.path(), text, size);
  return to.ours() ? length : show_descriptor(path, text, size, length);
}

/// realpath of a path in the tree: the real one of the file there, shown as the virtual one.
char* real_path(const char* path, char* out) {
  using RealPath = char*(const char*, char*);
  RealPath* next = V3D_NEXT(RealPath, "realpath");
  Rewritten to(path);
  char* found = next(to.path(), out);
  if (found) show_virtual(found);
  return found;
}

}  // namespace

V3D_INTERPOSE(int, accessed, "access", (const char* path, int mode)) {
  return V3D_NEXT(Access, "access")(Rewritten(path).path(), mode);
}
V3D_INTERPOSE(int, accessed_effectively, "eaccess", (const char* path, int mode)) {
  return V3D_NEXT(Access, "eaccess")(Rewritten(path).path(), mode);
}
V3D_ALIAS(int, accessed_effectively_too, "euidaccess", "eaccess", (const char*, int));

V3D_INTERPOSE(int, accessed_at, "faccessat", (int dir, const char* path, int mode, int flags)) {
  using AccessAt = int(int, const char*, int, int);
  Rewritten to(dir, path, Purpose::kLookup);
  return V3D_NEXT(AccessAt, "faccessat")(to.dir(), to.path(), mode, flags);
}

V3D_INTERPOSE(ssize_t, link_read, "readlink", (const char* path, char* text, size_t size)) {
  return read_link(path, text, size);
}
V3D_INTERPOSE(ssize_t, link_read_at, "readlinkat", (int dir, const char* path, char* text, size_t size)) {
  return read_link_at(dir, path, text, size);
}
V3D_INTERPOSE(ssize_t, link_read_checked, "__readlink_chk",
              (const char* path, char* text, size_t size, size_t room)) {
  using Checked = ssize_t(const char*, char*, size_t, size_t);
  if (size > room) return V3D_NEXT(Checked, "__readlink_chk")(path, text, size, room);  // which aborts
  return read_link(path, text, size);
}
V3D_INTERPOSE(ssize_t, link_read_at_checked, "__readlinkat_chk",
              (int dir, const char* path, char* text, size_t size, size_t room)) {
  using Checked = ssize_t(int, const char*, char*, size_t, size_t);
  if (size > room) return V3D_NEXT(Checked, "__readlinkat_chk")(dir, path, text, size, room);
  return read_link_at(dir, path, text, size);
}

V3D_INTERPOSE(char*, real_path_found, "realpath", (const char* path, char* out)) {
  return real_path(path, out);
}
V3D_INTERPOSE(char*, real_path_checked, "__realpath_chk", (const char* path, char* out, size_t room)) {
  using Checked = char*(const char*, char*, size_t);
  if (room < PATH_MAX) return V3D_NEXT(Checked, "__realpath_chk")(path, out, room);
  return real_path(path, out);
}
V3D_INTERPOSE(char*, canonical_name, "canonicalize_file_name", (const char* path)) {
  return real_path(path, nullptr);
}

V3D_INTERPOSE(int, handle_named, "name_to_handle_at",
              (int dir, const char* path, struct file_handle* handle, int* mount, int flags)) {
  using NameToHandle = int(int, const char*, struct file_handle*, int*, int);
  Rewritten to(dir, path, Purpose::kLookup);
  return V3D_NEXT(NameToHandle, "name_to_handle_at")(to.dir(), to.path(), handle, mount, flags);
}

V3D_INTERPOSE(int, watch_added, "inotify_add_watch", (int fd, const char* path, uint32_t mask)) {
  using AddWatch = int(int, const char*, uint32_t);
  return V3D_NEXT(AddWatch, "inotify_add_watch")(fd, Rewritten(path).path(), mask);
}

V3D_INTERPOSE(ssize_t, attribute_read, "getxattr",
              (const char* path, const char* name, void* value, size_t size)) {
  return V3D_NEXT(GetAttribute, "getxattr")(Rewritten(path).path(), name, value, size);
}
V3D_INTERPOSE(ssize_t, link_attribute_read, "lgetxattr",
              (const char* path, const char* name, void* value, size_t size)) {
  return V3D_NEXT(GetAttribute, "lgetxattr")(Rewritten(path).path(), name, value, size);
}
V3D_INTERPOSE(ssize_t, attributes_listed, "listxattr", (const char* path, char* list, size_t size)) {
  return V3D_NEXT(ListAttributes, "listxattr")(Rewritten(path).path(), list, size);
}
V3D_INTERPOSE(ssize_t, link_attributes_listed, "llistxattr", (const char* path, char* list, size_t size)) {
  return V3D_NEXT(ListAttributes, "llistxattr")(Rewritten(path).path(), list, size);
}

V3D_INTERPOSE(int, directory_changed, "chdir", (const char* path)) {
  using ChangeDirectory = int(const char*);
  int result = V3D_NEXT(ChangeDirectory, "chdir")(Rewritten(path, Purpose::kList).path());
  if (result == 0) note_working_directory();
  return result;
}
V3D_INTERPOSE(int, directory_changed_to, "fchdir", (int fd)) {
  using ChangeDirectory = int(int);
  int result = V3D_NEXT(ChangeDirectory, "fchdir")(fd);
  if (result == 0) note_working_directory();
  return result;
}
V3D_INTERPOSE(char*, directory_named_checked, "__getcwd_chk", (char* out, size_t size, size_t room)) {
  using GetDirectory = char*(char*, size_t, size_t);
  char* found = V3D_NEXT(GetDirectory, "__getcwd_chk")(out, size, room);
  if (found) show_virtual(found);
  return found;
}
V3D_INTERPOSE(char*, directory_named_anew, "get_current_dir_name", ()) {
  using GetDirectory = char*();
  char* found = V3D_NEXT(GetDirectory, "get_current_dir_name")();
  if (found) show_virtual(found);
  return found;
}
V3D_INTERPOSE(char*, directory_named, "getcwd", (char* out, size_t size)) {
  using GetDirectory = char*(char*, size_t);
  char* found = V3D_NEXT(GetDirectory, "getcwd")(out, size);
  if (found) show_virtual(found);
  return found;
}

}  // namespace v3d::shim
