#include "daemon/session.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "daemon/client_memory.h"
#include "daemon/server.h"
#include "gpu/base/log.h"
#include "ioctl/call.h"
#include "ioctl/drm.h"
#include "ioctl/ioctl_table.h"

namespace v3d::daemon {
namespace {

Reply failure(int error) {
  Reply reply;
  reply.error = error;
  return reply;
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
  wire::IoctlReply header = {static_cast<uint32_t>(parsed.arg.size()), parsed.memory.num_writes(),
                             static_cast<uint32_t>(fds.patches.size()),
                             static_cast<uint32_t>(fds.moves.size())};
  reply.payload.reserve(sizeof header + parsed.arg.size() + parsed.memory.writes().size() + 64);
  reply.append(header);
  reply.append(parsed.arg.data(), parsed.arg.size());
  reply.append(parsed.memory.writes().data(), parsed.memory.writes().size());
  for (const wire::FdPatch& patch : fds.patches) reply.append(patch);
  for (const wire::Move& move : fds.moves) reply.append(move);
  reply.fds = std::move(fds.given);
  for (ioctl::UniqueFd& fd : fds.moved_to) reply.fds.push_back(std::move(fd));
  return reply;
}

/// Numbers and descriptors that belong to them. @param first  descriptors before them
RequestFds request_fds(const ParsedIoctl& parsed, const Request& request, size_t first) {
  const auto* numbers = parsed.header.fd_numbers;
  return RequestFds(std::vector<int32_t>(numbers, numbers + parsed.header.num_fds),
                    std::span(request.fds).subspan(first));
}

}  // namespace

Session::Session(Server& server, int socket, Peer peer)
    : server_(server),
      peer_(std::move(peer)),
      socket_(socket, peer_.process->get(), *peer_.account),
      waiter_(std::make_shared<ioctl::Waiter>(socket, peer_.process->get())) {}

void Session::run() {
  log_client_ = {static_cast<uint64_t>(peer_.pid), absl::StrFormat("pid %d", peer_.pid)};
  const LogScope scope(&log_client_);
  Request request;
  while (socket_.receive(&request) && serve(request)) {
  }
  report_left_out(log_client_);
}

bool Session::serve(Request& request) {
  Reply reply;
  ioctl::Charge bytes;  // until the client has read it
  const int error = ioctl::out_of_memory_is_enomem([&] {
    if (request.error) return request.error;
    reply = answer(request);
    const size_t size = reply.payload.size();
    return size > MessageSocket::kFreeBuffer
               ? peer_.account->charge(ioctl::Resource::kRequestBytes, size, &bytes)
               : 0;
  });
  if (error) reply = failure(error);
  // One of them may be the client's end of this connection: it must not outlive the client while the reply
  // waits to be read.
  request.fds.clear();
  return socket_.send(request.header.op, reply) && greeted_;
}

Reply Session::answer(Request& request) {
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
  user_ = std::make_shared<ioctl::User>(ioctl::User{peer_.pid, peer_.program, peer_.process, log_client_});
  greeted_ = true;
  Reply reply;
  reply.append(wire::HelloReply{wire::kProtocol, getpid(),
                                static_cast<uint32_t>(server_.kernel().gpu().profile().version), 0});
  return reply;
}

namespace {

/// What tells a client of a file, without what opened it.
void append_file(uint64_t token, uint32_t minor, const ioctl::File* file, Reply* reply) {
  ioctl::UniqueFd status;
  if (file && file->status()) status.reset(fcntl(file->status()->memfd(), F_DUPFD_CLOEXEC, 0));
  const uint64_t bytes = status ? ioctl::FileStatus::bytes() : 0;
  reply->append(wire::FileReply{token, minor, static_cast<uint32_t>(bytes)});
  if (status) reply->fds.push_back(std::move(status));
}

}  // namespace

Reply Session::open(Request& request) {
  wire::OpenRequest args;
  PayloadReader reader(request.payload);
  if (!reader.read(&args)) return failure(EPROTO);
  Server::OpenedFile opened;
  if (const int error = server_.open_file(args.minor, args.flags, peer_, &opened)) return failure(error);
  const auto file = server_.find_file(opened.token);
  if (file) file->client()->used_by(user_);
  Reply reply;
  reply.fds.push_back(std::move(opened.client_end));
  append_file(opened.token, args.minor, file.get(), &reply);
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

Reply Session::drm_ioctl(Request& request) {
  ParsedIoctl parsed;
  if (const int error = parse_ioctl(*peer_.account, request, 0, &parsed)) return failure(error);
  const std::shared_ptr<ioctl::File> file = server_.find_file(parsed.header.token);
  if (!file) return failure(EBADF);
  file->client()->used_by(user_);
  RequestFds fds = request_fds(parsed, request, 0);
  ioctl::Call call{server_.kernel(), *file, parsed.memory, fds, waiter_, *peer_.account};
  const int error = ioctl::drm_ioctl(call, parsed.header.request, &parsed.arg);
  return ioctl_reply(error, parsed, fds);
}

Reply Session::fd_ioctl(Request& request) {
  ParsedIoctl parsed;
  if (const int error = parse_ioctl(*peer_.account, request, 1, &parsed)) return failure(error);
  RequestFds fds = request_fds(parsed, request, 1);
  const int error = ioctl::fd_ioctl(server_.kernel(), *peer_.account, request.fds[0].get(), parsed.memory,
                                    fds, parsed.header.request, &parsed.arg);
  return ioctl_reply(error, parsed, fds);
}

Reply Session::mmap(Request& request) {
  wire::MmapRequest args;
  PayloadReader reader(request.payload);
  if (!reader.read(&args)) return failure(EPROTO);
  const std::shared_ptr<ioctl::File> file = server_.find_file(args.token);
  if (!file) return failure(EBADF);
  file->client()->used_by(user_);
  RequestFds fds({}, {});
  SegmentMemory memory;
  ioctl::Call call{server_.kernel(), *file, memory, fds, waiter_, *peer_.account};
  ioctl::UniqueFd memfd;
  wire::MmapReply where = {};
  if (const int error =
          ioctl::mmap_file(call, args.offset, args.length, args.flags, &memfd, &where.fd_offset))
    return failure(error);
  Reply reply;
  reply.append(where);
  reply.fds.push_back(std::move(memfd));
  return reply;
}

Reply Session::command(Request& request) {
  const std::string text(reinterpret_cast<const char*>(request.payload.data()), request.payload.size());
  std::string answer;
  Reply reply;
  reply.error = server_.command(text, &answer);
  reply.append(answer.data(), answer.size());
  return reply;
}

}  // namespace v3d::daemon
