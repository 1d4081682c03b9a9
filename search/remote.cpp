// Lines of text over sockets: a question, its answer, and an empty line where there is none.
#include "search/remote.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "base/input_error.hpp"
#include "base/parallel.hpp"

namespace stratagem::search {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

struct Address {
  std::string secret;
  unsigned short port = 0;
  std::vector<std::string> hosts;
};

std::string text_of(const Address& address) {
  std::string text = address.secret + " " + std::to_string(address.port);
  for (const std::string& host : address.hosts) text += " " + host;
  return text;
}

Address address_from(const std::string& text) {
  std::istringstream words(text);
  Address address;
  words >> address.secret >> address.port;
  for (std::string host; words >> host;) address.hosts.push_back(host);
  return address;
}

using Context = std::shared_ptr<asio::io_context>;

/// Can the socket be read or written within so many ms?
bool ready(tcp::socket& socket, short what, int limit) {
  pollfd one{.fd = socket.native_handle(), .events = what, .revents = 0};
  return poll(&one, 1, limit) == 1;
}

/// Calls for about five seconds, counted in waits of 100 ms.
class Patience {
 public:
  bool operator()() { return ++waits_ < 50; }

 private:
  int waits_ = 0;
};

/// What whoever knows the secret is told.
const std::string welcome = "welcome\n";

/// An end of a connection.
class Wire {
 public:
  Wire(Context context, tcp::socket socket)
      : context_(std::move(context)), socket_(std::move(socket)) {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    set(TCP_KEEPIDLE, 10);
    set(TCP_KEEPINTVL, 5);
    set(TCP_KEEPCNT, 4);
    set(TCP_USER_TIMEOUT, 30'000);  // ms, of what was sent and is not confirmed
  }

  bool write(const std::string& line) {
    error_code error;
    asio::write(socket_, asio::buffer(line + "\n"), error);
    return !error;
  }
  /// Without its end.
  std::optional<std::string> read() {
    error_code error;
    const std::size_t size = asio::read_until(socket_, asio::dynamic_buffer(read_), '\n', error);
    if (error) return std::nullopt;
    std::string line = read_.substr(0, size - 1);
    read_.erase(0, size);
    return line;
  }
  /// The next bytes, if they come while `wait` says so.
  std::optional<std::string> read_bytes(std::size_t count, const std::function<bool()>& wait) {
    std::string bytes;
    while (bytes.size() < count) {
      if (!ready(socket_, POLLIN, 100)) {
        if (!wait()) return std::nullopt;
        continue;
      }
      std::array<char, 256> some{};
      error_code error;
      const std::size_t most = std::min(some.size(), count - bytes.size());
      bytes.append(some.data(), socket_.read_some(asio::buffer(some.data(), most), error));
      if (error) return std::nullopt;
    }
    return bytes;
  }

 private:
  void set(int option, int value) {
    setsockopt(socket_.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  }

  Context context_;  ///< outlives the socket
  tcp::socket socket_;
  std::string read_;
};

class RemoteHelper : public Helper {
 public:
  explicit RemoteHelper(Wire wire) : wire_(std::move(wire)) {}
  std::optional<std::string> ask(const std::string& question) override {
    if (!wire_.write(question)) return std::nullopt;
    return wire_.read();
  }

 private:
  Wire wire_;
};

std::string random_text() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 8; ++i) text += std::to_string(random()) + "-";
  return text;
}

/// Of all interfaces that are up, that of this machine alone last.
std::vector<std::string> own_hosts() {
  std::vector<std::string> hosts;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) == 0) {
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
      const bool usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || !usable) continue;
      const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
      hosts.push_back(asio::ip::address_v4(ntohl(address->sin_addr.s_addr)).to_string());
    }
    freeifaddrs(first);
  }
  hosts.emplace_back("127.0.0.1");
  return hosts;
}

/// Does it reach the other side within five seconds?
bool connects(tcp::socket& socket, const std::string& host, unsigned short port) {
  error_code error;
  socket.open(tcp::v4(), error);
  if (!error) socket.non_blocking(true, error);
  if (error) return false;
  socket.connect({asio::ip::make_address(host), port}, error);
  if (error && error != asio::error::in_progress && error != asio::error::would_block) return false;
  int failed = 0;
  socklen_t size = sizeof failed;
  const bool reached =
      ready(socket, POLLOUT, 5000) &&
      getsockopt(socket.native_handle(), SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed == 0;
  socket.non_blocking(false, error);
  return reached && !error;
}

/// A connection to whoever knows the secret, too.
std::optional<Wire> connected(const Address& address) {
  const Context context = std::make_shared<asio::io_context>();
  for (const std::string& host : address.hosts) {
    tcp::socket socket(*context);
    if (!connects(socket, host, address.port)) continue;
    Wire wire(context, std::move(socket));
    if (wire.write(address.secret) && wire.read_bytes(welcome.size(), Patience()) == welcome)
      return wire;
  }
  return std::nullopt;
}

}  // namespace

struct Port::Listener {
  explicit Listener(Crew& all) : crew(all) {}

  void listen() {
    while (!closing) {
      tcp::socket socket(*context);
      error_code error;
      acceptor.accept(socket, error);
      if (error || closing) continue;
      Wire wire(context, std::move(socket));
      const auto wait = [this, patience = Patience()]() mutable { return !closing && patience(); };
      if (wire.read_bytes(address.secret.size() + 1, wait) != address.secret + "\n") continue;
      if (!wire.write(welcome.substr(0, welcome.size() - 1))) continue;
      crew.join(std::make_unique<RemoteHelper>(std::move(wire)));
    }
  }

  Crew& crew;
  Context context = std::make_shared<asio::io_context>();
  tcp::acceptor acceptor{*context};
  Address address;
  std::atomic<bool> closing = false;
  std::thread thread;
};

Port::Port(Crew& crew) : listener_(std::make_unique<Listener>(crew)) {
  try {
    listener_->acceptor = tcp::acceptor(*listener_->context, tcp::endpoint(tcp::v4(), 0));
  } catch (const boost::system::system_error& error) {
    throw InputError("", "", "a port that other ranks can connect to", error.what());
  }
  listener_->address = {.secret = random_text(),
                        .port = listener_->acceptor.local_endpoint().port(),
                        .hosts = own_hosts()};
  listener_->thread = std::thread([this] { listener_->listen(); });
}

Port::~Port() {
  listener_->closing = true;
  error_code ignored;
  tcp::socket wakes(*listener_->context);  // an accept that waits is woken by nothing else
  wakes.connect({asio::ip::make_address("127.0.0.1"), listener_->address.port}, ignored);
  listener_->thread.join();
}

std::string Port::address() const { return text_of(listener_->address); }

bool help(const std::string& text, int threads,
          const std::function<std::string(const std::string&)>& answer) {
  const Address address = address_from(text);
  const auto answer_or_none = [&](const std::string& question) -> std::string {
    try {
      return answer(question);
    } catch (const std::exception&) {
      return "";
    }
  };
  std::atomic<bool> reached = false;
  for_each_index(threads, threads, [&](std::size_t) {
    std::optional<Wire> wire = connected(address);
    if (!wire) return;
    reached = true;
    while (const auto question = wire->read()) {
      if (!wire->write(answer_or_none(*question))) return;
    }
  });
  return reached;
}

}  // namespace stratagem::search
