/// The proxy knows pixmaps and fences by their ids. Ids are the server's: any client may use another's.
#pragma once

#include <memory>
#include <unordered_map>

#include "tools/xproxy/buffer.h"
#include "tools/xproxy/events.h"
#include "tools/xproxy/fence.h"

namespace v3d::xproxy {

template <typename Thing>
class Table {
 public:
  bool add(uint32_t id, const Listener* owner, std::shared_ptr<Thing> thing) {
    const bool is_new = rows_.try_emplace(id, Row{owner, std::move(thing)}).second;
    if (is_new) ++counts_[owner];
    return is_new;
  }
  /// Null: there is none of that id.
  std::shared_ptr<Thing> find(uint32_t id) const {
    const auto found = rows_.find(id);
    return found == rows_.end() ? nullptr : found->second.thing;
  }
  void remove(uint32_t id) {
    const auto found = rows_.find(id);
    if (found == rows_.end()) return;
    --counts_[found->second.owner];
    rows_.erase(found);
  }
  void remove_all(const Listener* owner) {
    std::erase_if(rows_, [owner](const auto& row) { return row.second.owner == owner; });
    counts_.erase(owner);
  }
  size_t count(const Listener* owner) const {
    const auto found = counts_.find(owner);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  struct Row {
    const Listener* owner;
    std::shared_ptr<Thing> thing;
  };
  std::unordered_map<uint32_t, Row> rows_;
  std::unordered_map<const Listener*, size_t> counts_;
};

/// A pixmap that Composite gave a name: what the server shows of a window.
struct WindowPixmap {};

struct Resources {
  Table<Buffer> buffers;               ///< by the pixmap
  Table<Fence> fences;                 ///< by the fence of SYNC
  Table<WindowPixmap> window_pixmaps;  ///< by the pixmap

  /// Where buffers are allocated; opened when the first is. Empty: it cannot be.
  const ioctl::UniqueFd& node() {
    if (!node_) node_ = open_render_node();
    return node_;
  }

 private:
  ioctl::UniqueFd node_;
};

}  // namespace v3d::xproxy
