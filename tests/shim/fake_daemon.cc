/// A daemon for the tests of the shim: as much of the ABI as they need, a journal of what it was asked
/// ($V3DEMU_FAKE_JOURNAL), and misbehaviour on request ($V3DEMU_FAKE_MODE: exit, silent, protocol, foreign:
/// served by nobody).

#include <drm.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ioctl/link/wire.h"

namespace wire = v3d::wire;

namespace {

std::string mode;
std::mutex lock;
std::condition_variable changed;

void journal(const std::string& line) {
  const char* path = getenv("V3DEMU_FAKE_JOURNAL");
  int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  std::string whole = line + "\n";
  if (fd >= 0 && write(fd, whole.data(), whole.size()) < 0) abort();
  close(fd);
}

std::string hex(const void* data, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    char digits[3];
    snprintf(digits, sizeof(digits), "%02x", static_cast<const uint8_t*>(data)[i]);
    text += digits;
  }
  return text;
}

struct Bo {
  int memory;
  uint64_t size;
};
struct File {
  uint32_t minor;
  ino_t client_ino;
  int own_end;
  std::map<uint32_t, Bo> bos;
};
std::map<uint64_t, File> files;
std::set<uint32_t> signalled;  // syncobjs
std::set<ino_t> sync_files;
uint32_t num_syncobjs = 0;

ino_t ino_of(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

struct Reply {
  int error = 0;
  std::vector<uint8_t> payload;
  std::vector<int> fds;  // closed after sending
  void add(const void* data, size_t size) {
    payload.insert(payload.end(), static_cast<const uint8_t*>(data),
                   static_cast<const uint8_t*>(data) + size);
  }
};

bool receive(int fd, void* data, size_t size, std::vector<int>* fds) {
  auto* at = static_cast<uint8_t*>(data);
  while (size) {
    iovec piece{at, size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::kMaxFds)];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
      size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int one;
        memcpy(&one, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        fds->push_back(one);
      }
    }
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool send(int fd, uint32_t op, const Reply& reply) {
  wire::MessageHeader header{wire::kMagic, op, static_cast<uint32_t>(reply.payload.size()), reply.error};
  std::vector<uint8_t> bytes(sizeof(header) + reply.payload.size());
  memcpy(bytes.data(), &header, sizeof(header));
  std::copy(reply.payload.begin(), reply.payload.end(), bytes.begin() + sizeof(header));
  size_t done = 0;
  while (done < bytes.size()) {
    // In pieces, so that the shim has to put them together.
    iovec piece{bytes.data() + done, std::min(bytes.size() - done, size_t{done ? 5000u : 7u})};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::kMaxFds)] = {};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!done && !reply.fds.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * reply.fds.size());
      cmsghdr* cmsg = CMSG_FIRSTHDR(&message);
      cmsg->cmsg_level = SOL_SOCKET;
      cmsg->cmsg_type = SCM_RIGHTS;
      cmsg->cmsg_len = CMSG_LEN(sizeof(int) * reply.fds.size());
      memcpy(CMSG_DATA(cmsg), reply.fds.data(), sizeof(int) * reply.fds.size());
    }
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0) break;
    done += static_cast<size_t>(sent);
  }
  for (int one : reply.fds) close(one);
  return done == bytes.size();
}

/// A parsed ioctl.
struct Ioctl {
  wire::IoctlRequest header;
  std::vector<uint8_t> arg;
  struct Segment {
    wire::Segment header;
    const uint8_t* bytes;
  };
  std::vector<Segment> segments;
  std::vector<int> fds;
  std::vector<wire::FdPatch> patches;
  std::vector<std::pair<uint64_t, std::vector<uint8_t>>> writes;

  uint32_t u32(size_t offset) const {
    uint32_t value = 0;
    if (offset + 4 <= arg.size()) memcpy(&value, &arg[offset], 4);
    return value;
  }
  uint64_t u64(size_t offset) const { return u32(offset) | static_cast<uint64_t>(u32(offset + 4)) << 32; }
  void put(size_t offset, uint64_t value, size_t size) {
    if (offset + size <= arg.size()) memcpy(&arg[offset], &value, size);
  }
  int fd(int number) const {
    for (uint32_t i = 0; i < header.num_fds; ++i) {
      if (header.fd_numbers[i] == number) return fds[i];
    }
    return -1;
  }
  const Segment* find(uint64_t address, uint64_t size, uint32_t flag) const {
    for (const Segment& segment : segments) {
      if (segment.header.flags & flag && address >= segment.header.address &&
          address + size <= segment.header.address + segment.header.size) {
        return &segment;
      }
    }
    return nullptr;
  }
  bool write(uint64_t address, const void* data, size_t size) {
    if (!size) return true;
    if (!find(address, size, wire::kOut)) return false;
    auto* bytes = static_cast<const uint8_t*>(data);
    writes.push_back({address, {bytes, bytes + size}});
    return true;
  }
  void give(uint32_t offset, bool cloexec, Reply* reply, int one) {
    patches.push_back({offset, wire::kInArg, cloexec});
    reply->fds.push_back(one);
  }
};

bool parse(const std::vector<uint8_t>& payload, std::vector<int> fds, Ioctl* out) {
  size_t at = sizeof(out->header);
  if (payload.size() < at) return false;
  memcpy(&out->header, payload.data(), at);
  if (payload.size() - at < out->header.arg_size) return false;
  out->arg.assign(payload.begin() + static_cast<ptrdiff_t>(at),
                  payload.begin() + static_cast<ptrdiff_t>(at + out->header.arg_size));
  at += out->header.arg_size;
  for (uint32_t i = 0; i < out->header.num_segments; ++i) {
    Ioctl::Segment segment{};
    if (payload.size() - at < sizeof(segment.header)) return false;
    memcpy(&segment.header, payload.data() + at, sizeof(segment.header));
    at += sizeof(segment.header);
    segment.bytes = payload.data() + at;
    if (segment.header.flags & wire::kIn) {
      if (payload.size() - at < segment.header.size) return false;
      at += segment.header.size;
    }
    out->segments.push_back(segment);
  }
  out->fds = std::move(fds);
  return at == payload.size();
}

void describe(const Ioctl& ioctl) {
  char text[64];
  snprintf(text, sizeof(text), "ioctl %02x", ioctl.header.request & 0xff);
  std::string line = text;
  if ((ioctl.header.request & 0xff) == 0x9e) {
    journal(std::string("mark ") + reinterpret_cast<const char*>(ioctl.arg.data()));
    return;
  }
  for (const auto& segment : ioctl.segments) {
    if (segment.header.flags & wire::kIn) line += " in " + hex(segment.bytes, segment.header.size);
    if (segment.header.flags & wire::kOut) line += " out " + std::to_string(segment.header.size);
  }
  if (ioctl.header.num_fds) line += " fds " + std::to_string(ioctl.header.num_fds);
  journal(line);
}

/// Blocks until the syncobj is signalled, time is up, or the client hangs up.
int wait_syncobj(int connection, uint32_t handle, int64_t deadline) {
  std::unique_lock hold(lock);
  for (;;) {
    if (signalled.count(handle)) return 0;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec * int64_t{1000000000} + now.tv_nsec >= deadline) return ETIME;
    pollfd client{connection, POLLIN | POLLRDHUP, 0};
    if (poll(&client, 1, 0) > 0) return EINTR;
    changed.wait_for(hold, std::chrono::milliseconds(5));
  }
}

int text_field(Ioctl* ioctl, size_t length_offset, const char* text) {
  uint64_t room = ioctl->u64(length_offset), length = strlen(text);
  uint64_t address = ioctl->u64(length_offset + 8);
  ioctl->put(length_offset, length, 8);
  return !address || ioctl->write(address, text, std::min(room, length)) ? 0 : EFAULT;
}

int v3d_or_core_ioctl(int connection, Ioctl* ioctl, File* file, Reply* reply) {
  const bool vc4 = file->minor == 1;
  switch (ioctl->header.request & 0xff) {
    case 0x9b:  // writes to an address that the request did not declare
      ioctl->writes.push_back({ioctl->u64(0), std::vector<uint8_t>(8, 0xee)});
      return 0;
    case 0x9c: {  // and a descriptor's number
      ioctl->patches.push_back({ioctl->u64(0), wire::kInMemory, 1});
      reply->fds.push_back(dup(0));
      return 0;
    }
    case 0x00: {  // VERSION
      ioctl->put(0, vc4 ? 0 : 1, 4);
      int error = text_field(ioctl, 16, vc4 ? "vc4" : "v3d");
      if (!error) error = text_field(ioctl, 32, "0");
      if (!error) error = text_field(ioctl, 48, vc4 ? "Broadcom VC4 graphics" : "Broadcom V3D graphics");
      return error;
    }
    case 0x09:  // GEM_CLOSE
      if (ioctl->u32(0) == 0xdead) _exit(0);
      return file->bos.erase(ioctl->u32(0)) ? 0 : EINVAL;
    case 0x0c: {  // GET_CAP
      const std::map<uint64_t, uint64_t> caps = {{5, 3}, {6, 1}, {0x13, 1}, {0x14, 0}};
      auto found = caps.find(ioctl->u64(0));
      if (found == caps.end()) return EOPNOTSUPP;
      ioctl->put(8, found->second, 8);
      return 0;
    }
    case 0x2d: {  // PRIME_HANDLE_TO_FD
      auto found = file->bos.find(ioctl->u32(0));
      if (found == file->bos.end()) return ENOENT;
      ioctl->give(8, ioctl->u32(4) & O_CLOEXEC, reply, dup(found->second.memory));
      return 0;
    }
    case 0x2e: {  // PRIME_FD_TO_HANDLE
      int fd = ioctl->fd(static_cast<int>(ioctl->u32(8)));
      if (fd < 0) return EBADF;
      for (auto& [token, any] : files) {
        for (auto& [handle, bo] : any.bos) {
          if (ino_of(bo.memory) != ino_of(fd)) continue;
          uint32_t fresh = static_cast<uint32_t>(file->bos.size()) + 1;
          file->bos[fresh] = {dup(bo.memory), bo.size};
          ioctl->put(0, fresh, 4);
          return 0;
        }
      }
      return EINVAL;
    }
    case 0xbf:  // SYNCOBJ_CREATE
      ioctl->put(0, ++num_syncobjs, 4);
      if (ioctl->u32(4) & 1) signalled.insert(num_syncobjs);
      return 0;
    case 0xc1: {  // SYNCOBJ_HANDLE_TO_FD
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return EMFILE;
      sync_files.insert(ino_of(pair[0]));
      ioctl->give(8, true, reply, pair[0]);
      return 0;
    }
    case 0xc2: {  // SYNCOBJ_FD_TO_HANDLE
      int fd = ioctl->fd(static_cast<int>(ioctl->u32(8)));
      if (fd < 0 || !sync_files.count(ino_of(fd))) return EINVAL;
      signalled.insert(ioctl->u32(0));
      return 0;
    }
    case 0xc3: {  // SYNCOBJ_WAIT
      auto* list = ioctl->find(ioctl->u64(0), uint64_t{ioctl->u32(16)} * 4, wire::kIn);
      if (!list) return EFAULT;
      uint32_t handle;
      memcpy(&handle, list->bytes, 4);
      int64_t deadline = static_cast<int64_t>(ioctl->u64(8));
      lock.unlock();
      int error = wait_syncobj(connection, handle, deadline);
      lock.lock();
      return error;
    }
    case 0xc5: {  // SYNCOBJ_SIGNAL
      auto* list = ioctl->find(ioctl->u64(0), uint64_t{ioctl->u32(8)} * 4, wire::kIn);
      if (!list) return EFAULT;
      uint32_t handle;
      memcpy(&handle, list->bytes, 4);
      signalled.insert(handle);
      changed.notify_all();
      return 0;
    }
    case 0x9d:  // test: descriptors and an error in one reply
      for (uint32_t i = 0; i < ioctl->u32(0) && i < 16; ++i) ioctl->give(8 + 4 * i, i % 2, reply, dup(0));
      ioctl->put(8 + 4 * 15, 4711, 4);
      return static_cast<int>(ioctl->u32(4));
  }
  if (vc4) return -1;
  switch (ioctl->header.request & 0xff) {
    case 0x41: {  // WAIT_BO
      if (ioctl->u32(0) != 0xb10c) return 0;
      lock.unlock();
      pollfd client{connection, POLLIN | POLLRDHUP, 0};
      poll(&client, 1, 10000);
      lock.lock();
      return ETIME;
    }
    case 0x42: {  // CREATE_BO
      uint64_t size = (uint64_t{ioctl->u32(0)} + 4095) & ~uint64_t{4095};
      if (!size) return EINVAL;
      uint32_t handle = static_cast<uint32_t>(file->bos.size()) + 1;
      int memory = memfd_create("bo", MFD_CLOEXEC);
      if (ftruncate(memory, static_cast<off_t>(size)) != 0) return ENOMEM;
      file->bos[handle] = {memory, size};
      ioctl->put(8, handle, 4);
      ioctl->put(12, handle << 17, 4);
      return 0;
    }
    case 0x43:  // MMAP_BO
      if (!file->bos.count(ioctl->u32(0))) return ENOENT;
      ioctl->put(8, (uint64_t{1} << 32) + (uint64_t{ioctl->u32(0)} << 24), 8);
      return 0;
    case 0x44:  // GET_PARAM
      if (ioctl->u32(4) || ioctl->u64(8) || ioctl->u32(0) > 16) return EINVAL;
      ioctl->put(8, 1000 + ioctl->u32(0), 8);
      return 0;
    case 0x4c:  // PERFMON_GET_COUNTER
      if (ioctl->arg[0] >= 93) return EINVAL;
      snprintf(reinterpret_cast<char*>(&ioctl->arg[1]), 64, "counter-%d", ioctl->arg[0]);
      return 0;
  }
  return -1;
}

/// Everything else: writes 0xa5 to all memory it may write to.
int any_ioctl(Ioctl* ioctl) {
  for (const auto& segment : ioctl->segments) {
    if (!(segment.header.flags & wire::kOut)) continue;
    std::vector<uint8_t> pattern(segment.header.size, 0xa5);
    ioctl->write(segment.header.address, pattern.data(), pattern.size());
  }
  return 0;
}

int fence_ioctl(Ioctl* ioctl, Reply* reply) {
  const uint32_t type = ioctl->header.request >> 8 & 0xff, number = ioctl->header.request & 0xff;
  const int self = ioctl->fds.front();
  ioctl->fds.erase(ioctl->fds.begin());
  if (type == '>' && sync_files.count(ino_of(self))) {
    if (number == 4) {
      ioctl->put(32, 1, 4);
      if (ioctl->u32(40)) {
        std::vector<uint8_t> record(80);
        record[64] = 1;
        if (!ioctl->write(ioctl->u64(48), record.data(), record.size())) return EFAULT;
        ioctl->put(40, 1, 4);
      }
      return 0;
    }
    int other = ioctl->fd(static_cast<int>(ioctl->u32(32)));
    if (other < 0) return ENOENT;
    ioctl->give(36, true, reply, dup(self));
    return 0;
  }
  for (auto& [token, file] : files) {
    for (auto& [handle, bo] : file.bos) {
      if (type == 'b' && ino_of(bo.memory) == ino_of(self)) return 0;
    }
  }
  return ENOTTY;
}

Reply answer_ioctl(int connection, bool fence, const std::vector<uint8_t>& payload, std::vector<int> fds) {
  Reply reply;
  Ioctl ioctl;
  if (!parse(payload, std::move(fds), &ioctl)) {
    journal("malformed request");
    reply.error = EPROTO;
    return reply;
  }
  std::lock_guard hold(lock);
  auto file = files.find(ioctl.header.token);
  if (fence) {
    reply.error = fence_ioctl(&ioctl, &reply);
  } else if (file == files.end()) {
    reply.error = EBADF;
  } else {
    describe(ioctl);
    reply.error = v3d_or_core_ioctl(connection, &ioctl, &file->second, &reply);
    if (reply.error < 0) reply.error = any_ioctl(&ioctl);
  }
  wire::IoctlReply header{static_cast<uint32_t>(ioctl.arg.size()),
                          static_cast<uint32_t>(ioctl.writes.size()),
                          static_cast<uint32_t>(ioctl.patches.size()),
                          0,
                          0,
                          0};
  reply.add(&header, sizeof(header));
  reply.add(ioctl.arg.data(), ioctl.arg.size());
  for (auto& [address, bytes] : ioctl.writes) {
    wire::Segment segment{address, static_cast<uint32_t>(bytes.size()), 0};
    reply.add(&segment, sizeof(segment));
    reply.add(bytes.data(), bytes.size());
  }
  for (const wire::FdPatch& patch : ioctl.patches) reply.add(&patch, sizeof(patch));
  for (int fd : ioctl.fds) close(fd);
  return reply;
}

wire::FileReply describe(uint64_t token, uint32_t minor) {
  return {token, minor, 0, minor == 1 ? wire::FileDriver::kVc4 : wire::FileDriver::kV3d, 0};
}

Reply open_file(const std::vector<uint8_t>& payload) {
  Reply reply;
  wire::OpenRequest request;
  memcpy(&request, payload.data(), sizeof(request));
  journal("open " + std::to_string(request.minor));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    reply.error = EMFILE;
    return reply;
  }
  std::lock_guard hold(lock);
  static uint64_t next_token = 0x1000;
  uint64_t token = ++next_token;
  files[token] = {request.minor, ino_of(pair[1]), pair[0], {}};
  wire::FileReply file = describe(token, request.minor);
  reply.add(&file, sizeof(file));
  reply.fds.push_back(pair[1]);
  return reply;
}

Reply adopt(const std::vector<int>& fds) {
  Reply reply;
  reply.error = ENOTTY;
  std::lock_guard hold(lock);
  for (auto& [token, file] : files) {
    if (fds.empty() || file.client_ino != ino_of(fds[0])) continue;
    wire::FileReply known = describe(token, file.minor);
    reply.add(&known, sizeof(known));
    reply.error = 0;
  }
  journal(reply.error ? "adopt refused" : "adopt");
  for (int fd : fds) close(fd);
  return reply;
}

Reply map(const std::vector<uint8_t>& payload) {
  Reply reply;
  wire::MmapRequest request;
  memcpy(&request, payload.data(), sizeof(request));
  std::lock_guard hold(lock);
  uint32_t handle = static_cast<uint32_t>((request.offset - (uint64_t{1} << 32)) >> 24);
  auto file = files.find(request.token);
  reply.error = EINVAL;
  if (file == files.end() || !file->second.bos.count(handle) || !(request.flags & MAP_SHARED)) return reply;
  const Bo& bo = file->second.bos[handle];
  if (request.length > bo.size) return reply;
  reply.error = 0;
  wire::MmapReply place{};
  reply.add(&place, sizeof(place));
  reply.fds.push_back(dup(bo.memory));
  return reply;
}

void serve(int connection) {
  wire::MessageHeader header;
  std::vector<int> fds;
  while (receive(connection, &header, sizeof(header), &fds)) {
    std::vector<uint8_t> payload(header.size);
    if (!receive(connection, payload.data(), payload.size(), &fds)) break;
    Reply reply;
    if (header.op == wire::kHello) {
      wire::HelloReply hello{mode == "protocol" ? 99 : wire::kProtocol, getpid(), 71, 0};
      wire::HelloRequest request;
      memcpy(&request, payload.data(), sizeof(request));
      journal("hello of " + std::to_string(request.pid));
      reply.add(&hello, sizeof(hello));
    } else if (header.op == wire::kOpen) {
      reply = open_file(payload);
    } else if (header.op == wire::kAdopt) {
      reply = adopt(fds);
    } else if (header.op == wire::kMmap) {
      reply = map(payload);
    } else {
      reply = answer_ioctl(connection, header.op == wire::kFdIoctl, payload, fds);
    }
    fds.clear();
    if (!send(connection, header.op, reply)) break;
  }
  close(connection);
}

}  // namespace

int main() {
  mode = getenv("V3DEMU_FAKE_MODE") ?: "";
  if (mode == "exit") return 1;
  signal(SIGPIPE, SIG_IGN);
  const char* preload = getenv("LD_PRELOAD");
  journal("start " + std::to_string(getpid()) + (preload ? " with LD_PRELOAD" : ""));
  const char* path = getenv(wire::kSocketVariable);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path ?: "", sizeof(address.sun_path) - 1);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  unlink(address.sun_path);
  if (mode == "silent") sleep(30);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return 1;
  // The peer's credentials are those at listen().
  if (mode == "foreign" && setresuid(65534, 65534, 65534) != 0) return 1;
  if (listen(listener, 64) != 0) return 1;
  // Until nobody has talked for a while, so that no test leaves one behind.
  for (;;) {
    pollfd ready{listener, POLLIN, 0};
    if (poll(&ready, 1, 20000) <= 0) return 0;
    int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) std::thread(serve, connection).detach();
  }
}
