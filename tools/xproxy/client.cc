#include "tools/xproxy/client.h"

#include <xcb/xcb.h>

#include <algorithm>

#include "tools/xproxy/handlers.h"
#include "tools/xproxy/limits.h"
#include "tools/xproxy/presenter.h"
#include "tools/xproxy/resources.h"
#include "tools/xproxy/upstream.h"

namespace v3d::xproxy {
namespace {

/// A request whose reply says nothing but that all requests before it are done.
Message make_ping(Order order) { return make_request(order, XCB_GET_INPUT_FOCUS, 0, 1); }

}  // namespace

Client::Client(Context& context, ioctl::UniqueFd socket) : context_(context), client_(std::move(socket)) {}

Client::~Client() {
  context_.presenter.forget(this);
  context_.resources.buffers.remove_all(this);
  context_.resources.fences.remove_all(this);
  context_.resources.window_pixmaps.remove_all(this);
}

bool Client::wants_client_input() const {
  return client_open_ && holds_ == 0 && client_.input().size() < 2 * kMostRequest &&
         server_.queued() < kMostQueued && client_.queued() < kMostQueued &&
         awaited_.size() < kMostUnanswered;
}

bool Client::wants_server_input() const {
  return server_open_ && server_.fd() >= 0 && client_.queued() < kMostQueued;
}

void Client::relay() {
  while (!finished_ && (greeted_ ? take_request() : greet())) {
  }
  while (!finished_ && greeted_ && (set_up_ ? take_response() : take_setup())) {
  }
  // A response may have let requests go on.
  while (!finished_ && greeted_ && take_request()) {
  }
  if (greeted_ && !server_.flush()) server_open_ = false;
  if (!client_.flush()) finished_ = true;
  // A server from which the memory of an image is taken would not show it.
  if (!client_open_ && holds_ == 0 && server_.queued() == 0 && unread_images_ == 0) finished_ = true;
  if (!server_open_ && client_.queued() == 0) finished_ = true;
}

// From the client.

bool Client::greet() {
  Greeting greeting;
  const Found found = find_greeting(client_.input(), &greeting);
  if (found == Found::kNothing) return false;
  ioctl::UniqueFd socket = found == Found::kPacket ? context_.upstream.connect() : ioctl::UniqueFd();
  if (!socket) {
    finished_ = true;
    return false;
  }
  order_ = greeting.order;
  const Message own = context_.upstream.greeting(greeting, socket);
  server_ = Stream(std::move(socket));
  server_.write(own.bytes());
  client_.consume(greeting.size);
  greeted_ = true;
  return true;
}

/// Passes on what has arrived of something that is `left` bytes long. False: nothing has.
bool Client::stream_on(Stream& from, Stream& to, uint64_t& left) {
  const size_t size = std::min<uint64_t>(left, from.input().size());
  if (size == 0) return false;
  if (!to.write_through(from.input().first(size))) finished_ = true;
  from.consume(size);
  left -= size;
  return true;
}

/// False: no more for now.
bool Client::take_request() {
  if (holds_ > 0 || server_.queued() >= kMostQueued || client_.queued() >= kMostQueued ||
      awaited_.size() >= kMostUnanswered)
    return false;
  if (request_left_ > 0) return stream_on(client_, server_, request_left_);
  if (image_memory_) return take_image();
  if (skipped_left_ > 0) {
    const size_t size = std::min<uint64_t>(skipped_left_, client_.input().size());
    client_.consume(size);
    skipped_left_ -= size;
    return size > 0;
  }
  RequestHead head;
  const Found found = find_request(client_.input(), order_, big_requests_, &head);
  if (found == Found::kBroken) finished_ = true;
  if (found != Found::kPacket) return false;
  if (is_large_image(head)) {
    if (client_.input().size() < head.head + kImageFields) return false;
    if (begin_image(head)) return true;
  }
  const Handler handler = find_handler(*this, head.major, head.minor);
  if (!handler) {
    sequence_.pass();
    request_left_ = head.size;
    return true;
  }
  if (head.size > kMostRequest) {
    fail({head.major, head.minor, Reader({}, order_)}, XCB_LENGTH);
    skipped_left_ = head.size;
    return true;
  }
  if (client_.input().size() < head.size) return false;
  const Bytes bytes = client_.input().first(head.size);
  std::vector<uint8_t> flat(bytes.begin(), bytes.begin() + 4);
  flat.insert(flat.end(), bytes.begin() + static_cast<ptrdiff_t>(head.head), bytes.end());
  client_.consume(head.size);
  handler(*this, {head.major, head.minor, Reader(flat, order_)});
  return true;
}

/// Has the pixels of the request go to memory that the server has, too. False: the request is passed on.
bool Client::begin_image(const RequestHead& head) {
  const std::optional<Image> image = find_image(head, client_.input(), order_, context_.server);
  if (!image) return false;
  image_memory_ = images_.take(context_.server, image->bytes);
  if (!image_memory_) return false;
  image_ = *image;
  client_.consume(head.head + kImageFields);
  const std::span<uint8_t> place = image_memory_->bytes().first(image->bytes);
  const Bytes there = client_.input().first(std::min(place.size(), client_.input().size()));
  std::copy(there.begin(), there.end(), place.begin());
  client_.receive_into(place.subspan(there.size()));
  client_.consume(there.size());
  return true;
}

/// False: pixels are missing.
bool Client::take_image() {
  if (client_.missing() > 0) return false;
  const std::shared_ptr<ImageMemory> memory = std::move(image_memory_);
  image_memory_ = nullptr;
  replace(
      put_shared_image(image_, order_, context_.server, memory->segment()),
      [this](const Reader& error, uint16_t sequence) { send_error(error, sequence, XCB_PUT_IMAGE, 0); },
      false);
  ++unread_images_;
  after_all([this, memory] {
    memory->set_used(false);
    --unread_images_;
  });
  return true;
}

void Client::pass(const Request& request, ioctl::ReceivedFd descriptor) {
  sequence_.pass();
  std::vector<uint8_t> bytes(request.fields.bytes().begin(), request.fields.bytes().end());
  // BIG-REQUESTS' form is not needed for what is short.
  const Message head =
      make_request(order_, request.major, request.minor, static_cast<uint16_t>(bytes.size() / 4));
  std::copy_n(head.bytes().begin(), 4, bytes.begin());
  server_.write(bytes, std::move(descriptor));
}

void Client::replace(const Message& request, Response response, bool has_reply) {
  awaited_.push_back({sequence_.pass(), std::move(response)});
  server_.write(request.bytes());
  // That a request without a reply is done shows in a later response, which has to come.
  silent_ = has_reply ? 0 : silent_ + 1;
  if (silent_ >= kMostSilent) after_all([] {});
}

void Client::answer(Message reply, ioctl::UniqueFd descriptor) {
  // A function that can be copied must own what it holds by a pointer.
  const auto held = std::make_shared<ioctl::UniqueFd>(std::move(descriptor));
  replace(make_ping(order_), [this, reply = std::move(reply), held](const Reader&, uint16_t sequence) {
    Message numbered = reply;
    send(numbered.u16(2, sequence), std::move(*held));
  });
}

void Client::fail(const Request& request, uint8_t code, uint32_t value) {
  const Error error{code, value, request.minor, request.major};
  replace(make_ping(order_),
          [this, error](const Reader&, uint16_t sequence) { send(make_error(order_, sequence, error)); });
}

void Client::send_error(const Reader& error, uint16_t sequence, uint8_t major, uint8_t minor) {
  send(make_error(order_, sequence, {error.u8(1), error.u32(4), minor, major}));
}

void Client::after_all(std::function<void()> done) {
  silent_ = 0;
  awaited_.push_back({sequence_.inject(), [done = std::move(done)](const Reader&, uint16_t) { done(); }});
  server_.write(make_ping(order_).bytes());
}

// From the server.

bool Client::take_setup() {
  SetupHead setup;
  if (find_setup(server_.input(), order_, &setup) != Found::kPacket) return false;
  client_.write(server_.input().first(setup.size));
  server_.consume(setup.size);
  set_up_ = true;
  return true;
}

bool Client::take_response() {
  if (client_.queued() >= kMostQueued) return false;
  while (server_.has_descriptors()) client_.attach(server_.take_descriptor());
  if (response_left_ > 0) {
    const bool moved = stream_on(server_, client_, response_left_);
    if (response_left_ == 0) write_events();
    return moved;
  }
  ResponseHead head;
  if (find_response(server_.input(), order_, &head) != Found::kPacket) return false;
  const uint64_t number = head.sequence ? sequence_.receive(*head.sequence) : 0;
  while (!awaited_.empty() && head.sequence && awaited_.front().number < number) awaited_.pop_front();
  const bool is_awaited = head.sequence && head.kind != ResponseKind::kEvent && !awaited_.empty() &&
                          awaited_.front().number == number;
  if (is_awaited) return handle_response(head, number);
  if (head.kind == ResponseKind::kEvent)
    look_at_event(*this, Reader(server_.input().first(kPacketSize), order_));
  Bytes packet = server_.input().first(kPacketSize);
  std::vector<uint8_t> numbered(packet.begin(), packet.end());
  if (head.sequence) {
    Message sequence(order_, 2);
    sequence.u16(0, static_cast<uint16_t>(sequence_.to_client(number)));
    std::copy_n(sequence.bytes().begin(), 2, numbered.begin() + 2);
  }
  client_.write(numbered);
  server_.consume(kPacketSize);
  response_left_ = head.size - kPacketSize;
  return true;
}

bool Client::handle_response(const ResponseHead& head, uint64_t number) {
  if (head.size > kMostResponse) {
    finished_ = true;
    return false;
  }
  if (server_.input().size() < head.size) return false;
  const Bytes packet = server_.input().first(head.size);
  const std::vector<uint8_t> bytes(packet.begin(), packet.end());
  server_.consume(head.size);
  const Awaited first = std::move(awaited_.front());
  awaited_.pop_front();
  if (first.response)
    first.response(Reader(bytes, order_), static_cast<uint16_t>(sequence_.to_client(number)));
  return true;
}

void Client::send_event(Message event) {
  if (client_.queued() + events_.size() * event.bytes().size() > kMostUnread) finished_ = true;
  if (finished_) return;
  events_.push_back(std::move(event));
  if (response_left_ == 0 && set_up_) write_events();
}

/// With the number of the last request that the client can know to be done.
void Client::write_events() {
  for (Message& event : events_) {
    event.u8(1, context_.server.extensions().present);
    client_.write(event.u16(2, static_cast<uint16_t>(sequence_.seen_by_client())).bytes());
  }
  events_.clear();
}

}  // namespace v3d::xproxy
