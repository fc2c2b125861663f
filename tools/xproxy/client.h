/// A Client is the connection of one X client: it is relayed to the server, but for the requests that the
/// proxy answers.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tools/xproxy/events.h"
#include "tools/xproxy/framing.h"
#include "tools/xproxy/images.h"
#include "tools/xproxy/sequence.h"
#include "tools/xproxy/stream.h"

namespace v3d::xproxy {

class Presenter;
class Server;
class Upstream;
struct Resources;

/// What all clients share.
struct Context {
  const Upstream& upstream;
  Server& server;
  Presenter& presenter;
  Resources& resources;
};

/// A request as if without BIG-REQUESTS: its fields begin at byte 4.
struct Request {
  uint8_t major, minor;
  Reader fields;
};

class Client : public Listener {
 public:
  /// The server's response, an error or a reply, to what stood for a request.
  /// @param sequence  the client's number of the request
  using Response = std::function<void(const Reader& response, uint16_t sequence)>;

  Client(Context& context, ioctl::UniqueFd socket);
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // For who watches descriptors.

  int client_fd() const { return client_.fd(); }
  /// Negative: not connected yet.
  int server_fd() const { return server_.fd(); }
  bool wants_client_input() const;
  bool wants_server_input() const;
  bool wants_client_output() const { return client_.queued() > 0; }
  bool wants_server_output() const { return server_.queued() > 0; }
  void read_client() { client_open_ = client_open_ && client_.fill(); }
  void read_server() { server_open_ = server_open_ && server_.fill(); }
  /// Moves on what has arrived.
  void relay();
  /// One of the two sides has gone, and what it sent has been passed on.
  bool is_finished() const { return finished_; }

  Order order() const override { return order_; }
  void send_event(Message event) override;

  // For who handles requests. Exactly one of these four is called for each.

  void pass(const Request& request, ioctl::ReceivedFd descriptor = {});
  /// Has the server do something else instead. A request that has no reply is responded to only by an error.
  void replace(const Message& request, Response response, bool has_reply = true);
  /// Answers it when all before it have been.
  void answer(Message reply, ioctl::UniqueFd descriptor = {});
  void fail(const Request& request, uint8_t code, uint32_t value = 0);

  /// The descriptor that came with the request; empty: none did.
  ioctl::ReceivedFd take_descriptor() { return client_.take_descriptor(); }
  void send(const Message& message, ioctl::UniqueFd descriptor = {}) {
    client_.write(message.bytes(), std::move(descriptor));
  }
  /// The server's error, as one about this request.
  void send_error(const Reader& error, uint16_t sequence, uint8_t major, uint8_t minor);
  void enable_big_requests() { big_requests_ = true; }
  /// The server takes requests of this client alone, and so none on the proxy's own connection.
  void set_grab(bool grabs) { grabs_ = grabs; }
  bool grabs() const { return grabs_; }
  /// Takes no more requests until resume().
  void hold() { ++holds_; }
  void resume() { --holds_; }
  /// Asks the server, unknown to the client, and tells when it has come there.
  void after_all(std::function<void()> done);
  Context& context() { return context_; }
  /// For what may come when this client has gone: empty then.
  std::weak_ptr<Client*> handle() const { return self_; }

 private:
  struct Awaited {
    uint64_t number;  ///< as the server counts
    Response response;
  };

  bool greet();
  bool take_request();
  bool begin_image(const RequestHead& head);
  bool take_image();
  bool take_setup();
  bool take_response();
  bool handle_response(const ResponseHead& head, uint64_t number);
  bool stream_on(Stream& from, Stream& to, uint64_t& left);
  void write_events();

  Context& context_;
  std::shared_ptr<Client*> self_ = std::make_shared<Client*>(this);
  Stream client_, server_;
  bool client_open_ = true, server_open_ = true, finished_ = false;
  bool greeted_ = false, set_up_ = false;
  Order order_ = Order::kLittle;
  bool big_requests_ = false, grabs_ = false;
  int holds_ = 0;
  Sequence sequence_;
  std::deque<Awaited> awaited_;
  size_t silent_ = 0;          ///< of the last ones so many have no reply
  uint64_t request_left_ = 0;  ///< bytes of a request that is passed on
  uint64_t skipped_left_ = 0;  ///< of one that is not
  Images images_;
  std::shared_ptr<ImageMemory> image_memory_;  ///< of the image whose pixels arrive; null: of none
  Image image_;
  int unread_images_ = 0;        ///< that the server may not have read yet
  uint64_t response_left_ = 0;   ///< of a response that is passed on
  std::vector<Message> events_;  ///< that wait for its end
};

}  // namespace v3d::xproxy
