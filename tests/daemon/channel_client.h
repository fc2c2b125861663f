/// This is the client's side of a channel, without a shim.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/daemon/client.h"

namespace v3d::daemon::test {

class ChannelClient {
 public:
  /// Asks for a channel of the connection.
  explicit ChannelClient(Client& client) : client_(client) {
    const Answer answer = client.ask(wire::kChannel, nullptr, 0);
    error_ = answer.error;
    if (answer.fds.size() != 1) return;
    void* memory =
        mmap(nullptr, sizeof(wire::Channel), PROT_READ | PROT_WRITE, MAP_SHARED, answer.fds[0].get(), 0);
    if (memory != MAP_FAILED) memory_ = static_cast<wire::Channel*>(memory);
  }
  ~ChannelClient() {
    if (memory_) munmap(memory_, sizeof(wire::Channel));
  }
  ChannelClient(const ChannelClient&) = delete;
  ChannelClient& operator=(const ChannelClient&) = delete;

  int error() const { return error_; }
  wire::Channel& memory() { return *memory_; }
  uint32_t load(uint32_t& word) { return std::atomic_ref<uint32_t>(word).load(); }

  /// Makes requests over the socket until the daemon listens. False when it does not.
  bool warm_up(uint64_t token) {
    for (int i = 0; i < 1000; ++i) {
      if (load(memory_->request) == wire::kListening) return true;
      wire::Segment none = {};
      client_.ioctl(token, kGetParam, none);
      for (int k = 0; k < 20 && load(memory_->request) != wire::kListening; ++k)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  bool post(uint32_t op, const void* payload, size_t bytes, uint32_t claimed, uint32_t magic = wire::kMagic) {
    const wire::MessageHeader header = {magic, op, claimed, 0};
    std::memcpy(memory_->request_message, &header, sizeof header);
    std::memcpy(memory_->request_message + sizeof header, payload, bytes);
    std::atomic_ref<uint32_t>(memory_->reply).store(wire::kNoReply);
    uint32_t listening = wire::kListening;
    return std::atomic_ref<uint32_t>(memory_->request).compare_exchange_strong(listening, wire::kPosted);
  }
  /// A wire::ChannelReplyState; kNoReply when none comes soon.
  uint32_t hear(std::chrono::milliseconds patience = std::chrono::seconds(5)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end)
      if (const uint32_t state = load(memory_->reply); state != wire::kNoReply) return state;
    return wire::kNoReply;
  }
  /// An ioctl through the channel, warm or not. @return what came of it, a wire::ChannelReplyState
  template <typename T>
  uint32_t ioctl(uint64_t token, uint32_t request, T& arg, int* error) {
    const std::vector<uint8_t> payload = Client::ioctl_payload(token, request, &arg);
    const auto size = static_cast<uint32_t>(payload.size());
    do {
      if (!warm_up(token)) return wire::kNoReply;
    } while (!post(wire::kIoctl, payload.data(), size, size));
    const uint32_t state = hear();
    wire::MessageHeader header;
    std::memcpy(&header, memory_->reply_message, sizeof header);
    *error = header.error;
    const size_t skipped = sizeof header + sizeof(wire::IoctlReply);
    if (state == wire::kReplied && header.size >= sizeof(wire::IoctlReply) + sizeof arg)
      std::memcpy(static_cast<void*>(&arg), memory_->reply_message + skipped, sizeof arg);
    return state;
  }

  static constexpr uint32_t kGetParam = 0xc0106444;

 private:
  Client& client_;
  wire::Channel* memory_ = nullptr;
  int error_ = -1;
};

}  // namespace v3d::daemon::test
