#include "tools/inspector/page_server.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ioctl/base/unique_fd.h"
#include "tools/cli/files/files.h"

namespace v3d::inspect {
namespace {

class PageServerTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"index.html", "page.js", "page.css"})
      std::ofstream(folder_.path / name) << "text of " << name;
    auto server = PageServer::create(
        folder_.path, 0,
        [](const std::string& question, const Parameters& of) {
          return Answer{200, true, question + " " + of("job").value_or("none")};
        },
        std::chrono::milliseconds(300));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    const std::string& address = server_->address();
    const size_t token = address.find('/', std::string("http://").size());
    host_ = address.substr(0, token);
    path_ = address.substr(token);
    thread_ = std::thread([this] { server_->run(); });
    client_ = std::make_unique<httplib::Client>(host_);
    ASSERT_EQ(get(path_), 200);
  }
  void TearDown() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
  }
  int get(const std::string& path, const httplib::Headers& headers = {}) {
    const httplib::Result result = client_->Get(path.c_str(), headers);
    body_ = result ? result->body : "";
    return result ? result->status : 0;
  }
  std::string host() const { return host_.substr(std::string("http://").size()); }

  tools::TemporaryFolder folder_{"v3demu-page-server"};
  std::unique_ptr<PageServer> server_;
  std::unique_ptr<httplib::Client> client_;
  std::string host_, path_, body_;
  std::thread thread_;
};

TEST_F(PageServerTest, ServesThePageAndAnswers) {
  EXPECT_EQ(body_, "text of index.html");
  EXPECT_EQ(get(path_ + "page.js"), 200);
  EXPECT_EQ(body_, "text of page.js");
  EXPECT_EQ(get(path_ + "ask/time?job=3"), 200);
  EXPECT_EQ(body_, "time 3");
  EXPECT_EQ(get(path_ + "../../etc/passwd"), 404);
  EXPECT_EQ(get(path_ + "package.json"), 404);
}

TEST_F(PageServerTest, WantsTheToken) {
  EXPECT_EQ(get("/"), 403);
  EXPECT_EQ(get("/page.js"), 403);
  EXPECT_EQ(get("/ask/capture"), 403);
  std::string wrong = path_;
  wrong[wrong.size() - 2] = wrong[wrong.size() - 2] == '0' ? '1' : '0';
  EXPECT_EQ(get(wrong), 403);
  EXPECT_EQ(body_, "");
  EXPECT_EQ(get(path_.substr(0, path_.size() - 1)), 403);
  EXPECT_EQ(path_.size(), 34u);
}

// A name that an attacker's server resolves to this host, and pages of other origins.
TEST_F(PageServerTest, WantsItsOwnHostAndOrigin) {
  EXPECT_EQ(get(path_, {{"Host", "attacker.example"}}), 403);
  EXPECT_EQ(get(path_, {{"Host", host()}, {"Origin", "http://attacker.example"}}), 403);
  EXPECT_EQ(get(path_, {{"Host", host()}, {"Origin", "null"}}), 403);
  EXPECT_EQ(get(path_, {{"Host", host()}, {"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(get(path_, {{"Host", host()}, {"Sec-Fetch-Site", "same-site"}}), 403);
  const httplib::Headers from_a_file = {{"Host", host()},
                                        {"Sec-Fetch-Site", "cross-site"},
                                        {"Sec-Fetch-Mode", "navigate"},
                                        {"Sec-Fetch-Dest", "document"}};
  EXPECT_EQ(get(path_, from_a_file), 200);
  const httplib::Headers of_a_frame = {{"Host", host()},
                                       {"Sec-Fetch-Site", "cross-site"},
                                       {"Sec-Fetch-Mode", "navigate"},
                                       {"Sec-Fetch-Dest", "iframe"}};
  EXPECT_EQ(get(path_, of_a_frame), 403);
  EXPECT_EQ(get(path_, {{"Host", host()}, {"Origin", host_}, {"Sec-Fetch-Site", "same-origin"}}), 200);
}

TEST_F(PageServerTest, TakesNoOtherMethodsAndNoLongBodies) {
  const auto status = [](const httplib::Result& result) { return result ? result->status : 0; };
  EXPECT_EQ(status(client_->Post(path_.c_str(), "x", "text/plain")), 403);
  EXPECT_EQ(status(client_->Delete(path_.c_str())), 403);
  const int of_much = status(client_->Post(path_.c_str(), std::string(1 << 20, 'x'), "text/plain"));
  EXPECT_NE(of_much, 200);
  EXPECT_EQ(get(path_), 200);
}

TEST_F(PageServerTest, LetsNothingRunButThePage) {
  const httplib::Result result = client_->Get(path_.c_str());
  ASSERT_TRUE(result);
  const std::string policy = result->get_header_value("Content-Security-Policy");
  EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(policy.find("script-src 'self'"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(result->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(result->get_header_value("Referrer-Policy"), "no-referrer");
  EXPECT_FALSE(result->has_header("Access-Control-Allow-Origin"));
}

/// Connections that say something, and then wait.
class Talkers {
 public:
  Talkers(const std::string& host, int count, const std::string& said) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(host.substr(host.find(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int n = 0; n < count; ++n) {
      sockets_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(sockets_.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        ADD_FAILURE() << "no connection";
    }
    say(said);
  }
  /// False: nobody listens any more.
  bool say(const std::string& text) {
    bool any = false;
    for (const ioctl::UniqueFd& one : sockets_)
      any =
          send(one.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()) || any;
    return any;
  }

 private:
  std::vector<ioctl::UniqueFd> sockets_;
};

// Lines that come slowly, or have no end, take a thread for a while only.
TEST_F(PageServerTest, WaitsForNobodyWithoutEnd) {
  Talkers slow(host(), 4, "GET / HTTP/1.1\r\nX: "), silent(host(), 4, "");
  std::atomic<bool> over{false};
  std::thread drips([&] {
    while (!over && slow.say("x")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_EQ(get(path_), 200);
  over = true;
  drips.join();
  Talkers endless(host(), 4, "GET / HTTP/1.1\r\nX: ");
  const std::string much(1 << 16, 'x');
  int said = 0;
  while (said < 1000 && endless.say(much)) ++said;
  EXPECT_LT(said, 1000);
  EXPECT_EQ(get(path_), 200);
}

// Of other users no word is heard.
TEST_F(PageServerTest, ServesItsOwnUserOnly) {
  if (getuid() != 0) GTEST_SKIP() << "root alone can be another user";
  const pid_t child = fork();
  if (child == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    httplib::Client client(host_);
    const httplib::Result result = client.Get(path_.c_str());
    _exit(result ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(get(path_), 200);
}

TEST(PageServer, SaysThatThereIsNoPage) {
  const auto server = PageServer::create("/nowhere", 0, {});
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.status().message().find("/nowhere/index.html"), std::string::npos) << server.status();
}

TEST(PageServer, TokensDiffer) {
  const tools::TemporaryFolder folder("v3demu-page-server");
  for (const char* name : {"index.html", "page.js", "page.css"}) std::ofstream(folder.path / name) << "x";
  const auto one = PageServer::create(folder.path, 0, {}), other = PageServer::create(folder.path, 0, {});
  ASSERT_TRUE(one.ok() && other.ok());
  const auto token = [](const PageServer& server) {
    return server.address().substr(server.address().size() - 33);
  };
  EXPECT_NE(token(**one), token(**other));
}

}  // namespace
}  // namespace v3d::inspect
