#include "daemon/session.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>

#include "absl/strings/str_format.h"
#include "daemon/client_memory.h"
#include "daemon/reply_first.h"
#include "daemon/server.h"
#include "gpu/base/log.h"
#include "ioctl/abi/channel_requests.h"
#include "ioctl/abi/v3d.h"
#include "ioctl/core/call.h"
#include "ioctl/firmware/client.h"
#include "ioctl/ioctl_table.h"
#include "ioctl/sync/deferred_wakes.h"

namespace v3d::daemon {
namespace {

/// Render nodes, and the node that it holds if that is not the display's, which shows what others draw.
bool may_guest_open(uint32_t holds, uint32_t minor) {
  if (minor == wire::kFramebufferMinor || minor == 1) return false;
  return minor == holds || minor >= wire::kFirstRenderMinor;
}

Reply failure(int error) {
  Reply reply;
  reply.error = error;
  return reply;
}

/// So long at most jobs are not started since requests follow each other over the socket.
constexpr int64_t kLongestBurst = 100'000;

/// Whether it may hand jobs to the GPU and does not wait for earlier ones.
bool is_submit(const Request& request) {
  wire::IoctlRequest header;
  return request.header.op == wire::kIoctl && PayloadReader(request.payload).read(&header) &&
         ioctl::drm::is_submit(ioctl::drm::request_nr(header.request));
}

/// The parts of a kIoctl or kFdIoctl payload.
struct ParsedIoctl {
  wire::IoctlRequest header;
  std::vector<uint8_t> arg;
  SegmentMemory memory;
  ioctl::Charge segments;
};

/// 0, EPROTO or ENOMEM.
int parse_ioctl(ioctl::Account& account, Request& request, size_t fds_before, ParsedIoctl* parsed) {
  PayloadReader reader(request.payload);
  std::span<const uint8_t> arg;
  if (!reader.read(&parsed->header) ||
      parsed->header.arg_size != ioctl::drm::request_size(parsed->header.request) ||
      !reader.take(parsed->header.arg_size, &arg) ||
      request.fds.size() != fds_before + parsed->header.num_fds || parsed->header.num_fds > wire::kMaxFds ||
      parsed->header.num_segments > kMaxSegments)
    return EPROTO;
  parsed->arg.assign(arg.begin(), arg.end());
  if (const size_t bytes = parsed->header.num_segments * SegmentMemory::kSegmentBytes;
      bytes > MessageSocket::kFreeBuffer)
    if (const int error = account.charge(ioctl::Resource::kRequestBytes, bytes, &parsed->segments))
      return error;
  return parsed->memory.parse(reader, parsed->header.num_segments) ? 0 : EPROTO;
}

Reply ioctl_reply(int error, const ParsedIoctl& parsed, RequestFds& fds) {
  Reply reply;
  reply.error = error;
  wire::IoctlReply header = {
      static_cast<uint32_t>(parsed.arg.size()),     parsed.memory.num_writes(),
      static_cast<uint32_t>(fds.patches.size()),    static_cast<uint32_t>(fds.moves.size()),
      static_cast<uint32_t>(fds.sync_files.size()), 0};
  reply.payload.reserve(sizeof header + parsed.arg.size() + parsed.memory.writes().size() + 64);
  reply.append(header);
  reply.append(parsed.arg.data(), parsed.arg.size());
  reply.append(parsed.memory.writes().data(), parsed.memory.writes().size());
  for (const wire::FdPatch& patch : fds.patches) reply.append(patch);
  for (const wire::Move& move : fds.moves) reply.append(move);
  for (const ReadySyncFile& ready : fds.sync_files) reply.append(ready.what);
  reply.fds = std::move(fds.given);
  for (ioctl::UniqueFd& fd : fds.moved_to) reply.fds.push_back(std::move(fd));
  for (ReadySyncFile& ready : fds.sync_files) reply.fds.push_back(std::move(ready.fd));
  return reply;
}

/// The syncobj of which the client wants a sync_file with the reply to its submit.
class WantedSyncFile {
 public:
  WantedSyncFile(ioctl::Call& call, const wire::IoctlRequest& request) : call_(call) {
    if (!request.sync_file_of || !ioctl::drm::is_submit(ioctl::drm::request_nr(request.request))) return;
    syncobj_ = call.file.find_syncobj(request.sync_file_of);
    if (syncobj_) syncobj_->fence(&before_);
  }
  /// After the submit. Without descriptors left the client will ask, and hear of it then.
  void make(RequestFds* fds) const {
    if (!syncobj_) return;
    wire::ReadySyncFile ready = {};
    ioctl::FencePtr fence = syncobj_->fence(&ready.entry);
    if (!fence || !ready.entry || ready.entry == before_) return;
    ready.place = fence->place_in(*call_.file.status());
    ioctl::UniqueFd fd = call_.kernel.export_sync_file(call_.account, {std::move(fence), ""});
    if (fd) fds->sync_files.push_back({ready, std::move(fd)});
  }

 private:
  ioctl::Call& call_;
  std::shared_ptr<ioctl::Syncobj> syncobj_;
  uint32_t before_ = 0;
};

/// Numbers and descriptors that belong to them. @param first  descriptors before them
RequestFds request_fds(const ParsedIoctl& parsed, const Request& request, size_t first) {
  const auto* numbers = parsed.header.fd_numbers;
  return RequestFds(std::vector<int32_t>(numbers, numbers + parsed.header.num_fds),
                    std::span(request.fds).subspan(first));
}

}  // namespace

Session::Session(Server& server, int socket, Peer peer)
    : server_(server),
      fd_(socket),
      peer_(std::move(peer)),
      socket_(socket, peer_.process->get(), *peer_.account),
      waiter_(std::make_shared<ioctl::Waiter>(socket, peer_.process->get())) {}

Session::~Session() {
  if (channel_entry_) channel_server_->leave(channel_entry_);
}

void Session::run() {
  log_client_ = {static_cast<uint64_t>(peer_.pid), absl::StrFormat("pid %d", peer_.pid)};
  const LogScope scope(&log_client_);
  Request request;
  int64_t burst_ns = INT64_MAX;  // since when submits have followed each other over the socket
  while (socket_.receive(&request)) {
    const int64_t came_ns = channel_entry_ ? ioctl::monotonic_ns() : 0;
    bool looks;
    {
      std::unique_lock<std::mutex> lock;
      if (channel_entry_) lock = std::unique_lock(channel_entry_->mutex());
      if (!serve(request)) break;
      looks = came_ns && !awaits_job_;
    }
    const bool more = looks && channel_server_->look(*channel_entry_, fd_, came_ns);
    const int64_t now_ns = more ? ioctl::monotonic_ns() : 0;
    if (!more || now_ns - burst_ns > kLongestBurst) {
      // Where other threads of the client submit, too, sessions need their processors soon.
      const bool alone = !channel_entry_ || channel_server_->is_of_one_thread();
      server_.wake_workers(!more && awaits_job_ && alone);
      burst_ns = INT64_MAX;
    } else {
      burst_ns = std::min(burst_ns, now_ns);
    }
  }
  server_.wake_workers();
  report_left_out(log_client_);
}

Reply Session::answer_or_fail(Request& request, ioctl::Charge* bytes) {
  Reply reply;
  const int error = ioctl::out_of_memory_is_enomem([&] {
    if (request.error) return request.error;
    reply = answer(request);
    const size_t size = reply.payload.size();
    return size > MessageSocket::kFreeBuffer
               ? peer_.account->charge(ioctl::Resource::kRequestBytes, size, bytes)
               : 0;
  });
  return error ? failure(error) : std::move(reply);
}

bool Session::serve(Request& request) {
  ioctl::Charge bytes;  // until the client has read it
  if (is_submit(request))
    ReplyFirst::begin();
  else
    server_.wake_workers();  // it may wait for the jobs of the one before
  const Reply reply = answer_or_fail(request, &bytes);
  // One of them may be the client's end of this connection: it must not outlive the client while the reply
  // waits to be read.
  request.fds.clear();
  return socket_.send(request.header.op, reply) && greeted_;
}

/// Whether a wait for a BO will not sleep.
bool Session::is_over(const wire::IoctlRequest& header, const Request& request) const {
  struct {
    wire::IoctlRequest header;
    ioctl::drm::WaitBo wait;
  } wanted;
  if (!PayloadReader(request.payload).read(&wanted) || header.arg_size != sizeof wanted.wait) return false;
  const auto file = server_.find_file(header.token);
  const auto bo = file && wanted.wait.timeout_ns != 0 ? file->find_bo(wanted.wait.handle) : nullptr;
  return !bo || bo->reservation().fences(true).empty();
}

/// @param file  of a submit
bool Session::is_short(const Request& request, std::shared_ptr<ioctl::File>* file) {
  wire::IoctlRequest header;
  if (request.header.op == wire::kMmap) return true;
  if (request.header.op != wire::kIoctl || !PayloadReader(request.payload).read(&header)) return false;
  const uint32_t number = ioctl::drm::request_nr(header.request);
  const auto found = server_.find_file(header.token);
  const bool of_v3d = !found || found->device().driver == ioctl::DrmDevice::Driver::kV3d;
  if (!ioctl::drm::goes_through_channel(of_v3d, number)) return false;
  if (!of_v3d) return true;
  if (number == ioctl::drm::request_nr(ioctl::drm::request::kWaitBo)) return is_over(header, request);
  // A submit may have to wait for earlier ones.
  if (ioctl::drm::is_submit(number)) *file = found;
  if (!*file) return true;
  const std::lock_guard lock((*file)->submit_mutex);
  return !(*file)->backlog.is_near();
}

void Session::serve_posted(Channel& channel) {
  const LogScope scope(&log_client_);
  Request request;
  try {
    if (!channel.take(&posted_, &request)) return;
  } catch (const std::bad_alloc&) {
    request = {};
  }
  std::shared_ptr<ioctl::File> file;
  if (!is_short(request, &file)) {
    if (!channel.decline()) socket_.send(wire::kChannel, Reply());
    return;
  }
  ioctl::Charge bytes;
  ioctl::DeferredWakes wakes(file && channel.wakes_itself() ? file->status().get() : nullptr);
  ReplyFirst::begin();
  const Reply reply = answer_or_fail(request, &bytes);
  if (channel.reply(request.header.op, reply, wakes.offsets()))
    wakes.hand_over();
  else
    socket_.send(request.header.op, reply);
}

Reply Session::answer(Request& request) {
  awaits_job_ = false;
  if (!greeted_ && request.header.op != wire::kHello) return failure(EPROTO);
  switch (request.header.op) {
    case wire::kHello:
      return hello(request);
    case wire::kOpen:
      return open(request);
    case wire::kAdopt:
      return adopt(request);
    case wire::kIoctl:
      return drm_ioctl(request);
    case wire::kFdIoctl:
      return fd_ioctl(request);
    case wire::kMmap:
      return mmap(request);
    case wire::kCommand:
      return command(request);
    case wire::kChannel:
      return make_channel();
    case wire::kScreen:
      return screen(request);
    case wire::kFirmware:
      return firmware(request);
  }
  log_warning("unknown request %d of %s (pid %d)", request.header.op, peer_.program, peer_.pid);
  return failure(EPROTO);
}

Reply Session::hello(Request& request) {
  wire::HelloRequest hello;
  PayloadReader reader(request.payload);
  if (!reader.read(&hello)) return failure(EPROTO);
  if (hello.protocol != wire::kProtocol) {
    log_error("a client of pid %d speaks protocol %d, this is %d", peer_.pid, hello.protocol,
              wire::kProtocol);
    return failure(EPROTONOSUPPORT);
  }
  peer_.program.assign(hello.program, strnlen(hello.program, sizeof hello.program));
  std::replace_if(
      peer_.program.begin(), peer_.program.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  log_client_.name = absl::StrFormat("%s (pid %d)", peer_.program, peer_.pid);
  peer_.account->set_name(log_client_.name);
  std::string run(reinterpret_cast<const char*>(request.payload.data()) + sizeof hello,
                  std::min<size_t>(request.payload.size() - sizeof hello, wire::kMaxRunNames));
  user_ = std::make_shared<ioctl::User>(
      ioctl::User{peer_.pid, peer_.program, peer_.process, log_client_, std::move(run)});
  greeted_ = true;
  Reply reply;
  reply.append(wire::HelloReply{
      wire::kProtocol, getpid(),
      static_cast<uint32_t>(version_number(server_.kernel().gpu().profile().generation)), 0});
  return reply;
}

namespace {

/// What tells a client of a file, without what opened it.
void append_file(uint64_t token, uint32_t minor, const ioctl::File* file, Reply* reply) {
  ioctl::UniqueFd status;
  if (file && file->status()) status.reset(fcntl(file->status()->memfd(), F_DUPFD_CLOEXEC, 0));
  const uint64_t bytes = status ? ioctl::FileStatus::bytes() : 0;
  const bool vc4 = file && file->device().modeset;
  reply->append(wire::FileReply{token, minor, static_cast<uint32_t>(bytes),
                                vc4 ? wire::FileDriver::kVc4 : wire::FileDriver::kV3d, 0});
  if (status) reply->fds.push_back(std::move(status));
}

}  // namespace

std::shared_ptr<ioctl::File> Session::used_file(uint64_t token) {
  std::shared_ptr<ioctl::File> file = server_.find_file(token);
  if (file) file->client()->used_by(user_);
  return file;
}

Reply Session::open(Request& request) {
  wire::OpenRequest args;
  PayloadReader reader(request.payload);
  if (!reader.read(&args)) return failure(EPROTO);
  if (peer_.guest_of && !may_guest_open(*peer_.guest_of, args.minor)) return failure(EACCES);
  if (args.minor == wire::kFramebufferMinor) return open_framebuffer(args.flags);
  Server::OpenedFile opened;
  if (const int error = server_.open_file(args.minor, args.flags, peer_, &opened)) return failure(error);
  const auto file = used_file(opened.token);
  Reply reply;
  reply.fds.push_back(std::move(opened.client_end));
  append_file(opened.token, args.minor, file.get(), &reply);
  return reply;
}

Reply Session::open_framebuffer(int flags) {
  Reply reply;
  if (const int error = server_.kernel().fbdev().open(flags, &reply.fds.emplace_back()))
    return failure(error);
  append_file(0, wire::kFramebufferMinor, nullptr, &reply);
  return reply;
}

Reply Session::adopt(Request& request) {
  if (request.fds.size() != 1) return failure(EPROTO);
  uint64_t token;
  uint32_t minor;
  if (!server_.adopt_file(request.fds[0].get(), &token, &minor)) return failure(ENOTTY);
  Reply reply;
  append_file(token, minor, server_.find_file(token).get(), &reply);
  return reply;
}

namespace {

/// What the client needs to map a BO in a slab.
void append_place(const ioctl::File& file, std::span<const uint8_t> mmap_bo, Reply* reply) {
  ioctl::drm::MmapBo args;
  if (file.device().modeset || mmap_bo.size() != sizeof args) return;
  std::memcpy(&args, mmap_bo.data(), sizeof args);
  const auto bo = file.find_bo(args.handle);
  if (!bo || !bo->buffer()->in_slab()) return;
  const ioctl::Buffer::Backing backing = bo->buffer()->backing_for_client();
  if (const uint64_t bytes = backing.file->slab_bytes)
    reply->append(wire::BoPlace{{backing.offset, backing.file->key.inode, bytes}, bo->size()});
}

}  // namespace

Reply Session::drm_ioctl(Request& request) {
  ParsedIoctl parsed;
  if (const int error = parse_ioctl(*peer_.account, request, 0, &parsed)) return failure(error);
  const std::shared_ptr<ioctl::File> file = used_file(parsed.header.token);
  if (!file) return failure(EBADF);
  RequestFds fds = request_fds(parsed, request, 0);
  ioctl::Call call{server_.kernel(), *file, parsed.memory, fds, waiter_, *peer_.account};
  awaits_job_ = parsed.header.sync_file_of != 0;
  const WantedSyncFile wanted(call, parsed.header);
  const int error = ioctl::drm_ioctl(call, parsed.header.request, &parsed.arg);
  if (!error) wanted.make(&fds);
  Reply reply = ioctl_reply(error, parsed, fds);
  if (!error &&
      ioctl::drm::request_nr(parsed.header.request) == ioctl::drm::request_nr(ioctl::drm::request::kMmapBo))
    append_place(*file, parsed.arg, &reply);
  return reply;
}

Reply Session::fd_ioctl(Request& request) {
  ParsedIoctl parsed;
  if (const int error = parse_ioctl(*peer_.account, request, 1, &parsed)) return failure(error);
  RequestFds fds = request_fds(parsed, request, 1);
  const int error = ioctl::fd_ioctl(server_.kernel(), *peer_.account, waiter_, request.fds[0].get(),
                                    parsed.memory, fds, parsed.header.request, &parsed.arg);
  return ioctl_reply(error, parsed, fds);
}

Reply Session::mmap(Request& request) {
  wire::MmapRequest args;
  PayloadReader reader(request.payload);
  if (!reader.read(&args)) return failure(EPROTO);
  const std::shared_ptr<ioctl::File> file = used_file(args.token);
  if (!file) return failure(EBADF);
  RequestFds fds({}, {});
  SegmentMemory memory;
  ioctl::Call call{server_.kernel(), *file, memory, fds, waiter_, *peer_.account};
  ioctl::Buffer::Backing backing;
  if (const int error = ioctl::mmap_file(call, args.offset, args.length, args.prot, args.flags, &backing))
    return failure(error);
  const uint64_t slab_bytes = backing.file->slab_bytes;
  const uint64_t inode = backing.file->key.inode;
  Reply reply;
  reply.append(wire::MmapReply{backing.offset, slab_bytes ? inode : 0, slab_bytes});
  if (slab_bytes && std::count(std::begin(args.known_slabs), std::end(args.known_slabs), inode)) return reply;
  ioctl::UniqueFd memfd(fcntl(backing.file->memfd.get(), F_DUPFD_CLOEXEC, 0));
  if (!memfd) return failure(EMFILE);
  reply.fds.push_back(std::move(memfd));
  return reply;
}

Reply Session::make_channel() {
  if (channel_entry_) return failure(EBUSY);
  if (const int error = peer_.account->charge(ioctl::Resource::kMappings, 1, &channel_mapping_))
    return failure(error);
  ioctl::UniqueFd memfd;
  auto channel = Channel::create(&memfd);
  auto channels = server_.channel_server_of(*peer_.account);
  if (!channel || !channels) return failure(ENOMEM);
  auto entry = std::make_shared<ChannelServer::Entry>(std::move(channel),
                                                      [this](Channel& posted) { serve_posted(posted); });
  channels->enter(entry);
  channel_server_ = std::move(channels);
  channel_entry_ = std::move(entry);
  Reply reply;
  reply.append(wire::ChannelReply{static_cast<uint32_t>(Channel::bytes()), 0});
  reply.fds.push_back(std::move(memfd));
  return reply;
}

Reply Session::screen(Request& request) {
  if (peer_.guest_of) return failure(EPERM);
  wire::ScreenRequest args;
  if (!PayloadReader(request.payload).read(&args)) return failure(EPROTO);
  if (!viewer_)
    if (const int error = Viewer::admit(server_.kernel().display(), *peer_.account, &viewer_))
      return failure(error);
  return viewer_->look(args, waiter_);
}

Reply Session::firmware(Request& request) {
  wire::FirmwareRequest args;
  if (!PayloadReader(request.payload).read(&args)) return failure(EPROTO);
  const std::shared_ptr<ioctl::File> file = used_file(args.token);
  if (!file) return failure(EBADF);
  RequestFds fds({}, {});
  SegmentMemory memory;
  ioctl::Call call{server_.kernel(), *file, memory, fds, waiter_, *peer_.account};
  awaits_job_ = args.call == wire::FirmwareCall::kExecute;
  wire::FirmwareReply answer = {};
  ioctl::UniqueFd mapped;
  if (const int error = ioctl::firmware::answer(call, args, &answer, &mapped)) return failure(error);
  Reply reply;
  reply.append(answer);
  if (mapped) reply.fds.push_back(std::move(mapped));
  return reply;
}

Reply Session::command(Request& request) {
  if (peer_.guest_of) return failure(EPERM);
  const std::string text(reinterpret_cast<const char*>(request.payload.data()), request.payload.size());
  std::string answer;
  Reply reply;
  reply.error = server_.command(text, &answer);
  reply.append(answer.data(), answer.size());
  return reply;
}

}  // namespace v3d::daemon
