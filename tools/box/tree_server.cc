#include "tools/box/tree_server.h"

#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shim/tree/connector_files.h"
#include "shim/tree/debug_files.h"
#include "shim/tree/tree.h"
#include "shim/tree/tree_content.h"
#include "tools/box/box.h"

namespace v3d::box {
namespace {

/// Files whose text the daemon makes, by their end. The command has the file's name.
constexpr std::string_view kLive[] = {"/gpu_stats"};
constexpr double kForever = 86400;
constexpr off_t kSysfsFileSize = 4096;  // which sysfs says of any file

/// Of the tree. Its number is its position and one.
struct Entry {
  std::string name;
  struct stat st = {};
  std::string text;  // of a file; where a link leads
  std::string live;  // the command that asks for the text of now; empty: the text never changes
  fuse_ino_t parent = FUSE_ROOT_ID;
  std::vector<fuse_ino_t> children;
};

/// What is in the tree, read once: the preload library's tree never changes.
class Entries {
 public:
  bool load() {
    const shim::Tree* tree = shim::tree();
    return tree && add(*tree, tree->root.c_str(), "/", FUSE_ROOT_ID) && add_processors(*tree);
  }
  const Entry* find(fuse_ino_t ino) const {
    return ino >= 1 && ino <= entries_.size() ? &entries_[ino - 1] : nullptr;
  }
  const Entry* find(fuse_ino_t folder, const char* name) const {
    const Entry* parent = find(folder);
    if (!parent) return nullptr;
    const auto child = std::find_if(parent->children.begin(), parent->children.end(),
                                    [&](fuse_ino_t ino) { return find(ino)->name == name; });
    return child == parent->children.end() ? nullptr : find(*child);
  }

 private:
  bool add(const shim::Tree& tree, const std::string& path, const std::string& name, fuse_ino_t parent) {
    struct stat st;
    if (lstat(path.c_str(), &st) != 0) return false;
    Entry entry;
    entry.name = name;
    entry.st = st;
    entry.parent = parent;
    if (const shim::Node* node = tree.node_of(st)) shim::describe_node(*node, &entry.st);
    if (S_ISLNK(st.st_mode)) read_link(path, &entry);
    if (S_ISREG(entry.st.st_mode)) read_file(path, &entry);
    if (S_ISDIR(st.st_mode)) entry.st.st_mode = S_IFDIR | 0755;
    const fuse_ino_t ino = entries_.size() + 1;
    entry.st.st_ino = ino;
    entries_.push_back(entry);
    if (ino != parent) entries_[parent - 1].children.push_back(ino);
    return !S_ISDIR(st.st_mode) || add_children(tree, path, ino);
  }

  /// The host's /proc/cpuinfo with the board's lines, which is to hide that.
  bool add_processors(const shim::Tree& tree) {
    const Entry* proc = find(FUSE_ROOT_ID, "proc");
    if (!proc) return true;  // the machine is to stay what it is
    const fuse_ino_t folder = proc->st.st_ino;
    if (!add(tree, "/proc/cpuinfo", "cpuinfo", folder)) return false;
    entries_.back().text += shim::processor_lines(shim::board_of(tree.chip)).c_str();
    return true;
  }

  bool add_children(const shim::Tree& tree, const std::string& path, fuse_ino_t ino) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
    if (!folder) return false;
    while (const dirent* child = readdir(folder.get())) {
      const std::string name = child->d_name;
      // What the preload library shows of the host's beside ours leads out of the tree.
      std::string child_path = path;
      child_path.append("/").append(name);
      if (name == "." || name == ".." || leads_out(child_path)) continue;
      if (!add(tree, child_path, name, ino)) return false;
    }
    return true;
  }

  static bool leads_out(const std::string& path) {
    char start = 0;
    return readlink(path.c_str(), &start, 1) == 1 && start == '/';
  }

  static void read_link(const std::string& path, Entry* entry) {
    entry->text.resize(static_cast<size_t>(entry->st.st_size));
    const ssize_t size = readlink(path.c_str(), entry->text.data(), entry->text.size());
    entry->text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  }

  static void read_file(const std::string& path, Entry* entry) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    char part[512];
    for (ssize_t got; fd >= 0 && (got = read(fd, part, sizeof part)) > 0;)
      entry->text.append(part, static_cast<size_t>(got));
    if (fd >= 0) close(fd);
    entry->st.st_size = kSysfsFileSize;
    for (const std::string_view live : kLive)
      if (path.ends_with(live)) entry->live = live.substr(1);
    if (shim::Text<64> command; shim::find_connector_file(path.c_str(), &command))
      entry->live = command.c_str();
    if (shim::Text<64> command; shim::find_debug_file(path.c_str(), &command)) entry->live = command.c_str();
  }

  std::vector<Entry> entries_;
};

/// Texts of open live files, as they were when these were opened.
using LiveTexts = std::map<uint64_t, std::string>;

struct Server {
  Entries entries;
  LiveTexts texts;
  uint64_t next_text = 1;
};

Server& server_of(fuse_req_t request) { return *static_cast<Server*>(fuse_req_userdata(request)); }

void lookup(fuse_req_t request, fuse_ino_t folder, const char* name) {
  const Entry* entry = server_of(request).entries.find(folder, name);
  if (!entry) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param reply{};
  reply.ino = entry->st.st_ino;
  reply.attr = entry->st;
  reply.attr_timeout = reply.entry_timeout = kForever;
  fuse_reply_entry(request, &reply);
}

/// Calls the function with an entry that exists.
template <typename Reply>
void with_entry(fuse_req_t request, fuse_ino_t ino, Reply reply) {
  const Entry* entry = server_of(request).entries.find(ino);
  if (entry)
    reply(*entry);
  else
    fuse_reply_err(request, ENOENT);
}

void get_attributes(fuse_req_t request, fuse_ino_t ino, fuse_file_info*) {
  with_entry(request, ino, [&](const Entry& entry) { fuse_reply_attr(request, &entry.st, kForever); });
}

void read_link(fuse_req_t request, fuse_ino_t ino) {
  with_entry(request, ino, [&](const Entry& entry) { fuse_reply_readlink(request, entry.text.c_str()); });
}

void open_file(fuse_req_t request, fuse_ino_t ino, fuse_file_info* file) {
  with_entry(request, ino, [&](const Entry& entry) {
    if ((file->flags & O_ACCMODE) != O_RDONLY) {
      fuse_reply_err(request, EACCES);
      return;
    }
    file->direct_io = 1;  // the size says nothing
    file->fh = 0;
    if (!entry.live.empty()) {
      Server& server = server_of(request);
      file->fh = server.next_text++;
      const std::string text = ask_daemon(entry.live.c_str(), false);
      server.texts[file->fh] = text.empty() ? entry.text : text;
    }
    if (fuse_reply_open(request, file) != 0) server_of(request).texts.erase(file->fh);
  });
}

void release_file(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  server_of(request).texts.erase(file->fh);
  fuse_reply_err(request, 0);
}

void reply_part(fuse_req_t request, const std::string& text, size_t size, off_t offset) {
  const size_t start = std::min(static_cast<size_t>(offset), text.size());
  fuse_reply_buf(request, text.data() + start, std::min(size, text.size() - start));
}

void read_text(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* file) {
  with_entry(request, ino, [&](const Entry& entry) {
    const LiveTexts& texts = server_of(request).texts;
    const auto live = texts.find(file->fh);
    reply_part(request, live == texts.end() ? entry.text : live->second, size, offset);
  });
}

void add_name(fuse_req_t request, std::string* list, const std::string& name, const struct stat& st) {
  const size_t before = list->size(),
               bytes = fuse_add_direntry(request, nullptr, 0, name.c_str(), nullptr, 0);
  list->resize(before + bytes);
  fuse_add_direntry(request, list->data() + before, bytes, name.c_str(), &st,
                    static_cast<off_t>(before + bytes));
}

/// The position of an entry in a list is where the next one begins.
void read_folder(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info*) {
  with_entry(request, ino, [&](const Entry& entry) {
    const Entries& entries = server_of(request).entries;
    std::string list;
    const size_t start = static_cast<size_t>(offset), limit = start + size;
    size_t end = start;
    const auto add = [&](const std::string& name, const Entry& child) {
      add_name(request, &list, name, child.st);
      if (list.size() <= limit) end = std::max(end, list.size());
    };
    add(".", entry);
    add("..", *entries.find(entry.parent));
    for (const fuse_ino_t child : entry.children) add(entries.find(child)->name, *entries.find(child));
    // An offset that this did not say is the end.
    if (start > list.size()) end = list.size();
    fuse_reply_buf(request, list.data() + std::min(start, end), end - std::min(start, end));
  });
}

void get_file_system(fuse_req_t request, fuse_ino_t) {
  struct statvfs st = {};
  st.f_bsize = st.f_frsize = 4096;
  st.f_namemax = 255;
  fuse_reply_statfs(request, &st);
}

}  // namespace

int serve_tree(int fuse, int ready) {
  Server server;
  if (!server.entries.load()) return 1;
  fuse_lowlevel_ops operations{};
  operations.lookup = lookup;
  operations.getattr = get_attributes;
  operations.readlink = read_link;
  operations.open = open_file;
  operations.release = release_file;
  operations.read = read_text;
  operations.readdir = read_folder;
  operations.statfs = get_file_system;
  char name[] = "v3demu-tree";
  char* words[] = {name, nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(1, words);
  fuse_session* session = fuse_session_new(&arguments, &operations, sizeof operations, &server);
  const std::string place = "/dev/fd/" + std::to_string(fuse);
  if (!session || fuse_session_mount(session, place.c_str()) != 0) return 1;
  ask_daemon("status", false);  // a connection that keeps it from leaving
  if (write(ready, "r", 1) != 1) return 1;
  close(ready);
  const int error = fuse_session_loop(session);
  fuse_session_destroy(session);
  return error ? 1 : 0;
}

}  // namespace v3d::box
