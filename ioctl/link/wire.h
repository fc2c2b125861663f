/// This is the protocol between libv3demu.so and v3demud. It has plain structs, little endian, and no
/// dependencies, since the shim includes it.
///
/// There are two kinds of sockets, both AF_UNIX:
///  - control: SOCK_STREAM, connected by the shim to socket_path(); one per client *thread*, so that a thread
///  blocked
///    in a wait never holds up another. Strictly request, reply, request, reply. The daemon serves each on a
///    thread of its own. A client that closes the connection while a request is under way aborts it (a wait
///    that a signal interrupted). A connection ends with the process that made it, whoever holds its
///    descriptors then.
///  - device: SOCK_SEQPACKET socketpair made by the daemon for every open() of a node; the client's end is
///  the DRM fd.
///    KMS events are sent on it to the client; to the daemon, messages of one byte that bring its end of a
///    control connection, a pair of sockets which the sender made: so a process talks to the daemon that
///    cannot connect to the control socket (another user, root or namespace since). When its last duplicate
///    anywhere is closed, the daemon sees end-of-file and releases the drm_file. Its identity is SO_COOKIE;
///    the name of the daemon's end begins with kNodeName.
///
/// Short requests need no socket while both sides are awake: they travel through a Channel, memory that
/// belongs to a control connection.
///
/// What needs no message: Status, memory in which the daemon says what it knows of a file's syncobjs.
///
/// Every message: MessageHeader, then `size` bytes of payload. File descriptors travel by SCM_RIGHTS with the
/// first byte of the header.
#pragma once

#include <cstdint>

namespace v3d::wire {

inline constexpr uint32_t kMagic = 0x55443356;  // "V3DU"
inline constexpr uint32_t kProtocol = 9;
inline constexpr uint32_t kMaxPayload = 64u << 20;
inline constexpr int kMaxFds = 16;

/// The control socket: $V3DEMU_SOCKET, else by settings in a folder of the user's (place.h), which has mode
/// 0700.
inline constexpr char kSocketVariable[] = "V3DEMU_SOCKET";
/// Where `v3demu run` wants to hear of GPU errors of what it starts (daemon/run_report.h).
inline constexpr char kRunVariable[] = "V3DEMU_RUN";
inline constexpr uint32_t kMaxRunNames = 127;
/// Abstract: after a zero byte.
inline constexpr char kNodeName[] = "v3demu-node-";

enum Op : uint32_t {
  kHello = 1,  ///< HelloRequest -> HelloReply; first on every connection
  kOpen = 2,   ///< OpenRequest -> FileReply + fd
  kAdopt = 3,  ///< fd of unknown origin -> FileReply; ENOTTY when it is no device socket of this daemon
  kIoctl = 4,  ///< IoctlRequest -> IoctlReply; a DRM ioctl ('d') on a file
  kFdIoctl =
      5,  ///< the same with the fd itself (sync_file '>', dma-buf 'b' and /dev/fb0 'F' ioctls); else ENOTTY
  kMmap = 6,       ///< MmapRequest -> MmapReply, mostly + fd
  kCommand = 7,    ///< text -> text; what `v3demu status` and its like ask for
  kChannel = 8,    ///< nothing -> ChannelReply + fd; once on a connection, from which on it has a Channel
  kScreen = 9,     ///< ScreenRequest -> ScreenReply + planes + fds; EBUSY when too many connections look
  kFirmware = 10,  ///< FirmwareRequest -> FirmwareReply, of kMap* + fd (firmware.h)
};

struct MessageHeader {
  uint32_t magic;
  uint32_t op;    ///< of the request; a reply repeats it
  uint32_t size;  ///< bytes of payload
  int32_t error;  ///< reply: 0 or a positive errno; request: 0
};

/// Followed by the value of $V3DEMU_RUN, of at most kMaxRunNames bytes, if there is one.
struct HelloRequest {
  uint32_t protocol;
  int32_t pid;
  char program[16];  ///< comm
};
struct HelloReply {
  uint32_t protocol;
  int32_t pid;
  uint32_t version;  ///< of the chip, 71 or 42
  uint32_t reserved;
};

/// Minors of the nodes: 0 v3d primary, 1 vc4 primary, 128 v3d render.
inline constexpr uint32_t kFirstRenderMinor = 128;
/// /dev/fb0, of which a FileReply has no token, and the descriptor is memory: "/memfd:" kFramebufferName.
inline constexpr uint32_t kFramebufferMinor = 29 << 8;
inline constexpr char kFramebufferName[] = "v3demu-fb0";
/// Its ioctls have arguments whose size and direction the kernel's words do not say; in requests they do. The
/// level of FBIOBLANK, which is no pointer, is part of the number.
inline constexpr uint32_t kFramebufferBlank = 'F' << 8 | 0x90, kBlankLevels = 5;
struct OpenRequest {
  uint32_t minor;
  int32_t flags;  ///< of open(2), and kOwnMemory
};
/// Every BO of the file has memory of its own: no Move will be asked of whoever cannot replace mappings.
inline constexpr int32_t kOwnMemory = 1 << 30;
/// Whose ioctls a file has besides those of all drivers: each uses the numbers 0x40 to 0x9f for its own.
enum class FileDriver : uint32_t { kV3d, kVc4 };
/// token names the drm_file in kIoctl and kMmap; unguessable, valid for every connection of the same user.
/// When status_bytes is not 0, the last descriptor is memory of that size that starts with a Status.
struct FileReply {
  uint64_t token;
  uint32_t minor;
  uint32_t status_bytes;
  FileDriver driver;
  uint32_t pad;
};

/// Connectors of the display node. They have entries like card1-HDMI-A-1 in /sys/class/drm.
struct Connector {
  const char* name;
  uint32_t id;         ///< of the mode object
  const char* status;  ///< as sysfs says it at the start
};
/// The sockets into which monitors may be plugged, then what writes to memory, which nobody probes. A board
/// has the first ones of both kinds (chip::DisplayUnit).
inline constexpr Connector kConnectors[] = {{"HDMI-A-1", 34, "connected"},
                                            {"HDMI-A-2", 54, "disconnected"},
                                            {"Writeback-1", 62, "unknown"},
                                            {"Writeback-2", 67, "unknown"}};
inline constexpr uint32_t kNumConnectors = 4, kNumSockets = 2;

/// What a file's syncobjs hold, and whether jobs use its BOs, for every process that uses the file. All words
/// are read and written atomically. The daemon writes `syncobjs`, `fences` and `bos` (before it answers the
/// request that changes them) and does not read them; the client writes the rest. Futexes: `fences`, and the
/// lower half of `syncobjs`.
///
/// A syncobj is what syncobjs[handle] says, unless the lower half of changes[handle] equals the lower half of
/// that: then a client has changed it, of which the daemon hears when it next looks at the syncobj.
struct Status {
  static constexpr uint32_t kSyncobjs = 512, kFences = 512, kSleepers = 255, kBos = 8192, kSpares = 4;

  uint32_t closed;  ///< by the daemon: the file is no more
  /// Threads that sleep on the futexes here which share a count; for none the daemon wakes nobody.
  uint32_t sleepers[kSleepers];
  uint64_t syncobjs[kSyncobjs];  ///< by handle
  /// By handle: in the lower half that of the entry of `syncobjs` which it replaces, in the upper one a
  /// Change or the place of a fence, as the upper half of a kPending entry.
  uint64_t changes[kSyncobjs];
  uint32_t fences[kFences];
  uint32_t bos[kBos];  ///< by handle: kAskOfBo, kIdleBo, or the upper half of a kPending entry of syncobjs
  /// Handles that have been destroyed by a Change, for whoever creates a syncobj; 0: none. Hints.
  uint32_t spares[kSpares];
  /// Grows by the daemon before a handle of a BO can become another one's, and when a BO's memory has gone
  /// elsewhere.
  uint32_t bo_changes;
};

/// Entries of Status::bos of no pending fence. Whoever finds one pending asks the daemon.
inline constexpr uint32_t kAskOfBo = 0, kIdleBo = 1u << 31;

/// In Status::sleepers. @param offset  of the futex in the Status, bytes
constexpr uint32_t sleepers_of(uint64_t offset) {
  return static_cast<uint32_t>(offset / sizeof(uint32_t) % Status::kSleepers);
}

/// An entry of Status::syncobjs: in the lower half 2 bits of SyncobjState, and 30 that no earlier entry of
/// the file had; in the upper one, of kPending: 12 bits of an index in `fences`, and 20 of a number. The
/// fence is signalled when fences[index] is not that number times two.
enum SyncobjState : uint32_t {
  kAsk = 0,        ///< not said here: no such handle, shared with other files, a fence from elsewhere
  kEmpty = 1,      ///< no fence
  kSignalled = 2,  ///< a fence that has signalled
  kPending = 3,    ///< a fence that had not, when it was put there
};
inline constexpr uint32_t kFenceIndexBits = 12;

/// What a client makes of a syncobj: places of no fence, as their index is 0.
enum Change : uint32_t {
  kEmptied = 0,
  kDestroyed = 1u << kFenceIndexBits,  ///< no such handle, until a client replaces that
  kSignalledNow = 2u << kFenceIndexBits,
};

/// Payload: IoctlRequest, arg_size bytes of argument, then num_segments times {Segment, bytes if kIn}.
/// Descriptors that the argument names (PRIME_FD_TO_HANDLE, SYNCOBJ_FD_TO_HANDLE, SYNC_IOC_MERGE's fd2,
/// IN_FENCE_FD) are attached in the order of fd_numbers. kFdIoctl: the fd itself is attached first and not
/// listed.
struct IoctlRequest {
  uint64_t token;
  uint32_t request;   ///< masked to 32 bits
  uint32_t arg_size;  ///< _IOC_SIZE(request)
  uint32_t num_segments;
  uint32_t num_fds;
  int32_t fd_numbers[kMaxFds];  ///< the client's numbers of the attached descriptors
  /// Of a submit, the handle of a syncobj: when the submit gives it a fence, the client is about to export it
  /// as a sync_file. 0: none.
  uint32_t sync_file_of;
  uint32_t reserved;
};

/// A piece of client memory behind a pointer of the argument. The daemon's copy_from_user sees the kIn ones;
/// a read outside all segments is EFAULT. kOut segments may be written (reply).
struct Segment {
  uint64_t address;
  uint32_t size;
  uint32_t flags;
};
enum SegmentFlags : uint32_t { kIn = 1, kOut = 2 };

/// Payload: IoctlReply, arg_size bytes of argument (to be copied out even on errors), num_writes times
/// {Segment (flags 0), bytes}: to be written to client memory, then num_fds FdPatch, then num_moves Move,
/// then num_sync_files ReadySyncFile, one at most; the fds of all three are attached in order.
struct IoctlReply {
  uint32_t arg_size;
  uint32_t num_writes;
  uint32_t num_fds;
  uint32_t num_moves;
  uint32_t num_sync_files;
  uint32_t reserved;
};

/// Where the client writes the number under which it received an attached descriptor.
struct FdPatch {
  uint64_t address;  ///< kInArg: byte offset in the argument; kInMemory: client address
  uint32_t place;
  uint32_t close_on_exec;
};
enum FdPlace : uint32_t { kInArg = 0, kInMemory = 1 };

/// Memory of a BO that another file holds from now on: the attached one, from its start. Where the client has
/// mapped the old file, "/memfd:" kSlabName with that identity, within [offset, offset + size), it maps the
/// new one instead, at the same addresses and with the same protection.
struct Move {
  uint64_t device, inode;
  uint64_t offset, size;  ///< bytes, whole pages
};
inline constexpr char kSlabName[] = "v3demu-slab";

/// What an export of IoctlRequest::sync_file_of would give.
struct ReadySyncFile {
  uint32_t entry;  ///< lower half of the syncobj's in Status::syncobjs: nothing else, as long as it is that
  uint32_t place;  ///< of the fence in Status::fences, as the upper half of that entry; 0: it has none
};

/// The descriptor is memory of `bytes`, which starts with a Channel.
struct ChannelReply {
  uint32_t bytes;
  uint32_t reserved;
};

/// A place for one request and its reply. Words are read and written atomically. A daemon that listens looks
/// at `request` all the time, for some microseconds after the last one; when it ceases to, requests take the
/// socket. There too goes a reply for which the client sleeps (recvmsg) or that does not fit here.
///
/// The client writes the request and kNoReply, then kPosted over kListening; while that stands it may take
/// the request back the same way. The daemon copies the request before it looks at it.
struct Channel {
  static constexpr uint32_t kMessage = 16256, kNoCpu = ~0u, kMostWakes = 4;

  uint32_t request;     ///< ChannelRequest
  uint32_t client_cpu;  ///< on which the last request was made, here or over the socket; kNoCpu: not known
  uint32_t on_socket;  ///< by the client: 1 when a request has gone over the socket; cleared by whoever looks
  /// By the client, with the request: not 0 when it knows the Status of the request's file, and once it has
  /// the reply wakes those who sleep on the futexes that come with that.
  uint32_t wakes_itself;
  uint32_t reserved[12];
  uint32_t reply;       ///< ChannelReplyState
  uint32_t daemon_cpu;  ///< on which requests are looked for: a client there has to sleep for it to run
  uint32_t num_wakes;   ///< with kReplied
  uint32_t wakes[kMostWakes];  ///< offsets in the Status, bytes
  uint32_t reserved2[9];
  uint8_t request_message[kMessage];  ///< MessageHeader and payload
  uint8_t reply_message[kMessage];
};
enum ChannelRequest : uint32_t { kDeaf = 0, kListening = 1, kPosted = 2, kTaken = 3 };
enum ChannelReplyState : uint32_t {
  kNoReply = 0,
  kReplied = 1,   ///< it is in reply_message
  kOnSocket = 2,  ///< it is, or soon will be, on the socket
  kDeclined = 3,  ///< the request was not served: it may take too long, and is to come over the socket. To a
                  ///< client that sleeps a message of kChannel without payload says so
  kSleeping = 4,  ///< by the client, over kNoReply: it waits for the reply on the socket
};

/// Slabs of which a client remembers where it has them mapped.
inline constexpr uint32_t kKnownSlabs = 8;

struct MmapRequest {
  uint64_t token;
  uint64_t offset;  ///< fake offset of MMAP_BO or MAP_DUMB
  uint64_t length;
  int32_t prot, flags;
  uint64_t known_slabs[kKnownSlabs];  ///< inodes of those that the client has mapped; 0: none
};
/// The client maps the attached memfd at fd_offset, or with none attached the slab that it knows.
struct MmapReply {
  uint64_t fd_offset;
  uint64_t slab;        ///< inode, if the memory lies in one; else 0
  uint64_t slab_bytes;  ///< of it as a whole
};

/// After the reply to MMAP_BO of a BO in a slab: what kMmap of its offset and of at most `bytes` would say.
struct BoPlace {
  MmapReply place;
  uint64_t bytes;  ///< of the BO
};

/// What the display shows. The first one of a connection makes it a viewer, until it is closed.
struct ScreenRequest {
  uint64_t seen;        ///< with kNextFrame: the frame that the viewer knows
  uint32_t timeout_ms;  ///< with kNextFrame: at most kMaxScreenWaitMs; ETIME when no other frame comes
  uint32_t flags;       ///< ScreenFlags
};
enum ScreenFlags : uint32_t {
  kNextFrame = 1,  ///< waits until the frame is not `seen`
  /// Of the frames since there is a viewer the last that a program completed with something in it, also when
  /// the screen has gone off or that program has ended since.
  kLastPicture = 2,
};
inline constexpr uint32_t kMaxScreenWaitMs = 10'000;
inline constexpr uint32_t kMaxScreenPlanes = 18, kMaxPlaneParts = 3;
inline constexpr uint32_t kMaxScreenFds = kMaxScreenPlanes * kMaxPlaneParts;

/// Followed by num_planes ScreenPlane from bottom to top; num_fds descriptors of memory are attached that
/// nobody can write to.
struct ScreenReply {
  uint64_t frame;                      ///< how many have been shown
  int64_t time_ns;                     ///< CLOCK_MONOTONIC at which it was
  uint32_t active;                     ///< 0: the screen is off, and the rest is 0
  uint32_t width, height, refresh_hz;  ///< of the mode
  uint32_t num_planes, num_fds;
};
struct ScreenPart {
  uint64_t offset;  ///< bytes, in the memory of the descriptor
  uint32_t pitch;   ///< bytes from row to row
  uint32_t fd;      ///< index in the attached descriptors
};
/// ioctl/display/scanout.h says what the fields mean.
struct ScreenPlane {
  uint64_t modifier;
  uint32_t plane_id, fourcc, width, height;
  uint32_t src_x, src_y, src_w, src_h;
  int32_t x, y;
  uint32_t w, h;
  uint32_t alpha, blend, rotation, color_encoding, color_range;
  uint32_t num_parts;
  ScreenPart parts[kMaxPlaneParts];
};

}  // namespace v3d::wire
