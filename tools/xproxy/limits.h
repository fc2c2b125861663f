/// The limits are what one proxy gives its clients at most. Beyond it a request fails as it would on a server
/// without memory (BadAlloc), or the client is disconnected where the protocol has no answer.
#pragma once

#include <cstddef>

namespace v3d::xproxy {

inline constexpr size_t kMostClients = 256;              ///< an X server's own limit
inline constexpr size_t kMostBuffers = 512;              ///< DRI3 pixmaps of one client
inline constexpr size_t kMostWindowPixmaps = 4096;       ///< named by one client
inline constexpr size_t kMostFences = 2048;              ///< of one client
inline constexpr size_t kMostSelections = 1024;          ///< Present event contexts of one client
inline constexpr size_t kMostPresents = 64;              ///< not yet shown, of one window
inline constexpr size_t kMostNotifies = 64;              ///< windows that one PresentPixmap notifies
inline constexpr size_t kMostWaitingNotifies = 1024;     ///< PresentNotifyMSC not yet answered, of one window
inline constexpr size_t kMostIdleWindows = 1024;         ///< remembered, of all clients
inline constexpr size_t kMostRectangles = 1024;          ///< of an update; of more, their bounds are copied
inline constexpr size_t kMostRequest = size_t{1} << 17;  ///< bytes of a request that the proxy answers
inline constexpr size_t kLeastShared = size_t{1} << 16;  ///< bytes of a PutImage that goes by shared memory
inline constexpr size_t kMostShared = size_t{1} << 26;
inline constexpr size_t kMostImageBytes = size_t{1} << 28;  ///< of that memory, of all clients
inline constexpr size_t kMostResponse = size_t{1} << 20;    ///< bytes of a reply that the proxy looks into
inline constexpr size_t kMostSetup = size_t{1} << 12;       ///< bytes of a client's greeting
inline constexpr size_t kMostQueued = size_t{1} << 20;  ///< bytes towards one side, before the other is read
inline constexpr size_t kMostUnread = size_t{1} << 22;  ///< bytes of events for a client that does not read
inline constexpr size_t kMostDescriptors = 16;          ///< of one side that no request has taken yet
inline constexpr size_t kMostUnanswered = 4096;  ///< requests whose response the proxy awaits, per client
inline constexpr size_t kMostSilent = 256;       ///< of these in a row without a reply
inline constexpr size_t kMostInFlight = size_t{1}
                                        << 17;  ///< bytes of pixels that the server has not confirmed

}  // namespace v3d::xproxy
