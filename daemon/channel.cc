#include "daemon/channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace v3d::daemon {
namespace {

/// @return whether the word was `from`, and now is `to`
bool exchange(uint32_t& word, uint32_t from, uint32_t to) {
  return std::atomic_ref<uint32_t>(word).compare_exchange_strong(from, to);
}

void store(uint32_t& word, uint32_t value) { std::atomic_ref<uint32_t>(word).store(value); }

}  // namespace

uint64_t Channel::bytes() {
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (sizeof(wire::Channel) + page - 1) / page * page;
}

std::unique_ptr<Channel> Channel::create(ioctl::UniqueFd* memfd) {
  memfd->reset(memfd_create("v3demu-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!*memfd || ftruncate(memfd->get(), static_cast<off_t>(bytes())) != 0 ||
      fcntl(memfd->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return nullptr;
  void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memfd->get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* channel = static_cast<wire::Channel*>(memory);
  channel->client_cpu = channel->daemon_cpu = wire::Channel::kNoCpu;
  return std::unique_ptr<Channel>(new Channel(channel));
}

Channel::~Channel() {
  store(memory_.request, wire::kDeaf);
  munmap(&memory_, bytes());
}

void Channel::listen() const { exchange(memory_.request, wire::kDeaf, wire::kListening); }

bool Channel::turn_away() const {
  if (exchange(memory_.request, wire::kListening, wire::kDeaf)) return true;
  if (is_posted()) return false;
  store(memory_.request, wire::kDeaf);  // nonsense
  return true;
}

bool Channel::is_posted() const {
  return std::atomic_ref<uint32_t>(memory_.request).load(std::memory_order_acquire) == wire::kPosted;
}

bool Channel::went_to_socket() const {
  const std::atomic_ref<uint32_t> word(memory_.on_socket);
  if (word.load(std::memory_order_relaxed) == 0) return false;
  word.store(0);
  return true;
}

void Channel::say_cpu(uint32_t cpu) const { store(memory_.daemon_cpu, cpu); }

uint32_t Channel::client_cpu() const { return std::atomic_ref<uint32_t>(memory_.client_cpu).load(); }

bool Channel::take(std::vector<uint8_t>* bytes, Request* request) const {
  if (!exchange(memory_.request, wire::kPosted, wire::kTaken)) return false;
  wire::MessageHeader header;
  std::memcpy(&header, memory_.request_message, sizeof header);
  *request = {};
  if (header.magic == wire::kMagic && header.size <= wire::Channel::kMessage - sizeof header) {
    bytes->assign(memory_.request_message + sizeof header,
                  memory_.request_message + sizeof header + header.size);
    request->header = header;
    request->payload = *bytes;
  }
  store(memory_.request, wire::kListening);
  return true;
}

bool Channel::wakes_itself() const {
  return std::atomic_ref<uint32_t>(memory_.wakes_itself).load(std::memory_order_relaxed) != 0;
}

bool Channel::reply(uint32_t op, const Reply& reply, std::span<const uint32_t> wakes) const {
  const wire::MessageHeader header = {wire::kMagic, op, static_cast<uint32_t>(reply.payload.size()),
                                      reply.error};
  if (reply.fds.empty() && reply.payload.size() <= wire::Channel::kMessage - sizeof header) {
    std::memcpy(memory_.reply_message, &header, sizeof header);
    if (header.size > 0)
      std::memcpy(memory_.reply_message + sizeof header, reply.payload.data(), header.size);
    memory_.num_wakes = static_cast<uint32_t>(wakes.size());
    std::ranges::copy(wakes, memory_.wakes);
    if (exchange(memory_.reply, wire::kNoReply, wire::kReplied)) return true;
  }
  store(memory_.reply, wire::kOnSocket);
  return false;
}

bool Channel::decline() const {
  if (exchange(memory_.reply, wire::kNoReply, wire::kDeclined)) return true;
  store(memory_.reply, wire::kOnSocket);
  return false;
}

}  // namespace v3d::daemon
