#include "shim/interpose/open_nodes.h"

#include "ioctl/link/wire.h"
#include "shim/board/board_devices.h"
#include "shim/drm/files.h"
#include "shim/drm/framebuffer.h"

namespace v3d::shim {

const Node* find_open_node(int fd, const struct stat& st) {
  const Tree* active = tree_if_active();
  if (const Node* node = active ? active->node_of(st) : nullptr) return node;
  if (fd < 0) return nullptr;
  File file;
  if (is_framebuffer(fd, st))
    file.minor = wire::kFramebufferMinor;
  else if (const int place = find_board_device(fd, st); place >= 0)
    file.minor = kFirstBoardDevice + static_cast<uint32_t>(place);
  else if (!S_ISSOCK(st.st_mode) || !find_file(fd, st, &file))
    return nullptr;
  const Tree* nodes = tree();
  return nodes ? nodes->node_by_wire_minor(file.minor) : nullptr;
}

}  // namespace v3d::shim
