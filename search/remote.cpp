// Lines of text over sockets: a question, its answer, and an empty line where there is none.
#include "search/remote.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

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
  /// Reads that take longer fail; 0: none does.
  void limit_reads(int seconds) {
    const timeval limit{.tv_sec = seconds, .tv_usec = 0};
    setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
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

/// A connection that the other side has accepted.
std::optional<Wire> connected(const Address& address) {
  const Context context = std::make_shared<asio::io_context>();
  for (const std::string& host : address.hosts) {
    tcp::socket socket(*context);
    error_code error;
    socket.connect({asio::ip::make_address(host), address.port}, error);
    if (error) continue;
    Wire wire(context, std::move(socket));
    if (wire.write(address.secret)) return wire;
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
      wire.limit_reads(5);
      if (wire.read() != address.secret) continue;
      wire.limit_reads(0);
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

void help(const std::string& text, int threads,
          const std::function<std::string(const std::string&)>& answer) {
  const Address address = address_from(text);
  const auto answer_or_none = [&](const std::string& question) -> std::string {
    try {
      return answer(question);
    } catch (const std::exception&) {
      return "";
    }
  };
  std::atomic<int> reached = 0;
  for_each_index(threads, threads, [&](std::size_t) {
    std::optional<Wire> wire = connected(address);
    if (!wire) return;
    ++reached;
    while (const auto question = wire->read()) {
      if (!wire->write(answer_or_none(*question))) return;
    }
  });
  if (reached == 0) {
    std::string hosts;
    for (const std::string& host : address.hosts) hosts += " " + host;
    throw InputError("", "", "rank 0 at one of" + hosts, "nobody there");
  }
}

}  // namespace stratagem::search
