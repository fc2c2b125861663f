#include "tools/xproxy/proxy.h"

#include <algorithm>

#include "ioctl/base/received_fd.h"
#include "tools/xproxy/limits.h"

namespace v3d::xproxy {

Proxy::Proxy(ioctl::UniqueFd end, ioctl::UniqueFd stop, double vblank_hz)
    : end_(std::move(end)), stop_(std::move(stop)), vblank_hz_(vblank_hz) {}

std::string Proxy::open(const std::string& display) {
  if (!poller_.is_usable()) return "no descriptors are left";
  if (!upstream_.parse(display)) return "DISPLAY names no display: " + display;
  std::string error;
  server_ = Server::connect(display, &error);
  if (!server_) return error;
  error = display_.open();
  if (!error.empty()) return error;
  const Clock clock(vblank_hz_, monotonic_ns());
  presenter_ = std::make_unique<Presenter>(*server_, clock, [this](int fd) { poller_.wake_on(fd); });
  context_ = std::make_unique<Context>(Context{upstream_, *server_, *presenter_, resources_});
  for (const int fd : {end_.get(), stop_.get(), server_->fd()}) poller_.watch(fd, EPOLLIN);
  for (const ioctl::UniqueFd& listener : display_.listeners()) poller_.watch(listener.get(), EPOLLIN);
  return {};
}

void Proxy::accept(const ioctl::UniqueFd& listener) {
  ioctl::UniqueFd socket = Display::accept(listener);
  // A client that is closed at once reads what a full server makes it read: that it cannot connect.
  if (socket && clients_.size() < kMostClients)
    clients_.push_back(std::make_unique<Client>(*context_, std::move(socket)));
  else
    ioctl::close_socket(std::move(socket));
}

void Proxy::dispatch(const Poller::Ready& ready) {
  if (ready.fd == end_.get()) {
    program_ended_ = true;
    poller_.watch(ready.fd, 0);
  }
  if (ready.fd == stop_.get()) stopped_ = true;
  for (const ioctl::UniqueFd& listener : display_.listeners())
    if (ready.fd == listener.get()) accept(listener);
  for (const auto& client : clients_) {
    // EPOLLHUP and EPOLLERR show as the end of what there is to read.
    if (ready.fd == client->client_fd() && (ready.events & ~uint32_t{EPOLLOUT})) client->read_client();
    if (ready.fd == client->server_fd() && (ready.events & ~uint32_t{EPOLLOUT})) client->read_server();
  }
}

void Proxy::watch(const Client& client) {
  const auto events = [](bool input, bool output) {
    return (input ? uint32_t{EPOLLIN} : 0) | (output ? uint32_t{EPOLLOUT} : 0);
  };
  poller_.watch(client.client_fd(), events(client.wants_client_input(), client.wants_client_output()));
  if (client.server_fd() >= 0)
    poller_.watch(client.server_fd(), events(client.wants_server_input(), client.wants_server_output()));
}

void Proxy::relay_all() {
  for (const auto& client : clients_) client->relay();
  std::erase_if(clients_, [this](const std::unique_ptr<Client>& client) {
    if (!client->is_finished()) {
      watch(*client);
      return false;
    }
    poller_.forget(client->client_fd());
    if (client->server_fd() >= 0) poller_.forget(client->server_fd());
    return true;
  });
}

void Proxy::run() {
  const Server::Events events{
      [this](const xcb_configure_notify_event_t& one) {
        presenter_->configured(nullptr, one.window, {one.x, one.y, one.width, one.height});
      },
      [this](xcb_window_t window) { presenter_->destroyed(window); }};
  while (!stopped_ && server_->is_alive() && !(program_ended_ && clients_.empty())) {
    for (const Poller::Ready& ready : poller_.wait(presenter_->next_ns())) dispatch(ready);
    // What a client hears of a window is of a new one, where the server told us before that its id's old one
    // is gone.
    server_->process(events);
    relay_all();
    presenter_->step();
    server_->process(events);
    // Events of Present have come meanwhile.
    relay_all();
  }
}

}  // namespace v3d::xproxy
