/// These functions handle the requests that the proxy does not just pass on. Their fields: dri3proto 1.2,
/// presentproto 1.2, the encodings of the X Window System Protocol and of its extension SYNC.
#pragma once

#include <functional>

#include "tools/xproxy/client.h"

namespace v3d::xproxy {

/// Gets all of a request, and calls one of Client's four ways to go on.
using Handler = void (*)(Client& client, const Request& request);

/// Null: the request is passed on.
Handler find_handler(Client& client, uint8_t major, uint8_t minor);

Handler find_core_handler(uint8_t major);
Handler find_sync_handler(uint8_t minor);
void handle_dri3(Client& client, const Request& request);
void handle_buffer_from_pixmap(Client& client, const Request& request);
void handle_buffers_from_pixmap(Client& client, const Request& request);
void handle_present(Client& client, const Request& request);

/// Tells clients of Present that a window changes before the client learns it that hears of it from the
/// server.
void look_at_event(Client& client, const Reader& event);

/// Goes on with a window or pixmap once the server has told what it is, as GetGeometry does; of one that it
/// does not know the client gets the error, and then `failed` is called.
void with_geometry(Client& client, const Request& request, uint32_t drawable, Client::Response done,
                   std::function<void()> failed = {});
/// Has the server do a request without reply in place of one that made something known; `undo` is called
/// where it cannot.
void replace_creation(Client& client, const Request& request, const Message& create,
                      std::function<void()> undo);

}  // namespace v3d::xproxy
