#include "tools/inspector/page_server.h"

#include <httplib.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/files/files.h"
#include "tools/inspector/local_server.h"

namespace v3d::inspect {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr size_t kMostBody = 4096, kThreads = 4;

/// 128 bits that nobody can guess. Empty: the system has none.
std::string make_token() {
  std::array<char, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  return absl::BytesToHexString({bytes.data(), bytes.size()});
}

/// Takes the same time wherever they differ.
bool same_text(const std::string& a, const std::string& b) {
  unsigned char differs = a.size() != b.size();
  for (size_t n = 0; n < a.size() && n < b.size(); ++n)
    differs = static_cast<unsigned char>(differs | (a[n] ^ b[n]));
  return differs == 0;
}

struct PageFile {
  const char* name;
  const char* type;
};
constexpr PageFile kFiles[] = {{"index.html", "text/html; charset=utf-8"},
                               {"page.js", "text/javascript; charset=utf-8"},
                               {"page.css", "text/css; charset=utf-8"}};

}  // namespace

struct PageServer::State {
  explicit State(const LocalLimits& limits) : server(limits) {}

  LocalServer server;
  Ask ask;
  std::map<std::string, std::pair<std::string, const char*>> files;  // by path behind the token
  std::string host, token, address;

  bool is_allowed(const httplib::Request& request) const;
  void set_headers(httplib::Response& response) const;
  void serve(const httplib::Request& request, httplib::Response& response) const;
};

/// Everything but the page itself and programs of whoever has the address.
bool PageServer::State::is_allowed(const httplib::Request& request) const {
  if (request.get_header_value_count("Host") != 1 || request.get_header_value("Host") != host) return false;
  if (request.has_header("Origin") && request.get_header_value("Origin") != "http://" + host) return false;
  // Whoever has the address may lead there, as the file does that open_browser() writes; nobody else sees
  // what comes.
  const std::string site = request.get_header_value("Sec-Fetch-Site");
  const bool leads_here = request.get_header_value("Sec-Fetch-Mode") == "navigate" &&
                          request.get_header_value("Sec-Fetch-Dest") == "document";
  if (!site.empty() && site != "same-origin" && site != "none" && !leads_here) return false;
  const size_t end = request.path.find('/', 1);
  return end != std::string::npos && same_text(request.path.substr(1, end - 1), token);
}

void PageServer::State::set_headers(httplib::Response& response) const {
  // Text of captures is shown as text alone; were it not, it still could not run, nor reach anybody.
  response.set_header(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
      "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");  // the address has the token
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Cross-Origin-Opener-Policy", "same-origin");
  response.set_header("Cache-Control", "no-store");
}

void PageServer::State::serve(const httplib::Request& request, httplib::Response& response) const {
  set_headers(response);
  const std::string path = request.path.substr(token.size() + 2);
  if (const auto file = files.find(path.empty() ? "index.html" : path); file != files.end()) {
    response.set_content(file->second.first, file->second.second);
    return;
  }
  constexpr std::string_view kQuestions = "ask/";
  if (!path.starts_with(kQuestions)) {
    response.status = 404;
    return;
  }
  const Answer answer =
      ask(path.substr(kQuestions.size()), [&](const char* name) -> std::optional<std::string> {
        if (!request.has_param(name)) return std::nullopt;
        return request.get_param_value(name);
      });
  response.status = answer.status;
  response.set_content(answer.body, answer.is_json ? "application/json" : "application/octet-stream");
}

PageServer::PageServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
PageServer::~PageServer() { stop(); }

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::create(const std::string& folder, int port, Ask ask,
                                                               std::chrono::milliseconds patience) {
  std::unique_ptr<PageServer> page(
      new PageServer(std::make_unique<State>(LocalLimits{.idle = patience, .request = patience})));
  State& state = *page->state_;
  state.ask = std::move(ask);
  for (const PageFile& file : kFiles) {
    const std::optional<std::string> text = tools::read_file(absl::StrCat(folder, "/", file.name));
    if (!text)
      return absl::NotFoundError(absl::StrCat(
          "the page is not there: no ", folder, "/", file.name,
          "; it is made by the build where Node.js and npm are (packages nodejs and npm), and they "
          "reach the npm registry"));
    state.files[file.name] = {*text, file.type};
  }
  state.token = make_token();
  if (state.token.empty()) return absl::UnavailableError("no random numbers for the token in the address");
  httplib::Server& server = state.server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kMostBody);
  server.set_tcp_nodelay(true);
  // By default the port could be shared with another program.
  server.set_socket_options([](socket_t) {});
  server.set_pre_routing_handler([&state](const httplib::Request& request, httplib::Response& response) {
    if (state.is_allowed(request) && (request.method == "GET" || request.method == "HEAD"))
      return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get(".*", [&state](const httplib::Request& request, httplib::Response& response) {
    state.serve(request, response);
  });
  if (port == 0)
    port = server.bind_to_any_port(kLoopback);
  else if (!server.bind_to_port(kLoopback, port))
    port = -1;
  if (port <= 0) return absl::UnavailableError("the port is not free");
  state.host = absl::StrCat(kLoopback, ":", port);
  state.address = absl::StrCat("http://", state.host, "/", state.token, "/");
  return page;
}

const std::string& PageServer::address() const { return state_->address; }
void PageServer::run() { state_->server.listen_after_bind(); }
void PageServer::stop() { state_->server.stop(); }

}  // namespace v3d::inspect
