#include "tools/debugger/adapter.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "daemon/board.h"
#include "gpu/qpu/check/broken_rules.h"
#include "tools/cli/files/files.h"
#include "tools/cli/kernels/kernel_options.h"
#include "tools/debugger/kernel_session.h"
#include "tools/debugger/variables.h"

namespace v3d::debugger {
namespace {

using Json = nlohmann::json;

/// What stands in files need not be text.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// More than an editor asks for. What is nested deeper is no message.
constexpr size_t kMostNesting = 64, kMostBreakpoints = 4096, kMostReferences = 1 << 20;

/// Nothing: it is no JSON, or nested too deep for functions that call themselves.
std::optional<Json> parse(const std::string& text) {
  bool fits = true;
  Json json = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, const Json&) {
        fits = fits && static_cast<size_t>(depth) <= kMostNesting;
        return fits;
      },
      false);
  if (!fits || json.is_discarded()) return {};
  return json;
}

/// What a request cannot have, for its response.
struct Refusal {
  std::string text;
};

/// Numbers of threads in the protocol are above 0.
int id_of(uint64_t thread) { return static_cast<int>(thread) + 1; }

class Adapter {
 public:
  explicit Adapter(Messages& messages) : messages_(messages) {}
  /// What the session tells until it has ended asks it for its buffers.
  ~Adapter() {
    if (session_) session_->end();
  }
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;
  bool serve();

 private:
  void handle(const Json& request);
  void send(Json message);
  void event(const char* name, Json body);
  void output(const std::string& text, const char* category);
  void tell(const Halt& halt);
  void tell_end(const Halt& halt);

  Json initialize(const Json& arguments);
  Json launch(const Json& arguments);
  Json set_breakpoints(const Json& arguments);
  Json set_exception_breakpoints(const Json& arguments);
  Json configuration_done(const Json& arguments);
  Json threads(const Json& arguments);
  Json stack_trace(const Json& arguments);
  Json scopes(const Json& arguments);
  Json variables(const Json& arguments);
  Json evaluate(const Json& arguments);
  Json read_memory(const Json& arguments);
  Json go_on(const Json& arguments);
  Json step(const Json& arguments);
  Json step_out(const Json& arguments);
  Json step_back(const Json& arguments);
  Json reverse_continue(const Json& arguments);
  Json pause(const Json& arguments);
  Json disconnect(const Json& arguments);
  Json terminate(const Json& arguments);

  KernelSession& session();
  bool is_kernel(const Json& source) const;
  uint64_t thread_of(const Json& arguments) const;
  int64_t line_here(int64_t line) const { return line + (lines_from_1_ ? 0 : 1); }
  int line_there(int line) const { return line - (lines_from_1_ ? 0 : 1); }
  int reference(const Branch& branch);
  std::string place_of(uint64_t thread);
  Json variable(const Variable& from);
  void look(uint64_t thread, const std::function<void(const Place&)>& see);

  struct Request {
    const char* name;
    Json (Adapter::*answer)(const Json& arguments);
  };
  static const Request kRequests[];

  Messages& messages_;
  std::mutex mutex_;  // of sequence_
  int sequence_ = 0;
  bool lines_from_1_ = true, over_ = false;
  std::string path_;
  bool stops_on_entry_ = false, halts_at_faults_ = true;
  std::map<size_t, std::string> outputs_;
  std::vector<Branch> branches_;  // by reference, from 1, until it goes on
  /// What the session is told once the response is sent: events follow responses.
  std::function<void()> then_;
  int next_breakpoint_ = 1;
  std::unique_ptr<KernelSession> session_;
};

const Adapter::Request Adapter::kRequests[] = {
    {"initialize", &Adapter::initialize},
    {"launch", &Adapter::launch},
    {"setBreakpoints", &Adapter::set_breakpoints},
    {"setExceptionBreakpoints", &Adapter::set_exception_breakpoints},
    {"configurationDone", &Adapter::configuration_done},
    {"threads", &Adapter::threads},
    {"stackTrace", &Adapter::stack_trace},
    {"scopes", &Adapter::scopes},
    {"variables", &Adapter::variables},
    {"evaluate", &Adapter::evaluate},
    {"readMemory", &Adapter::read_memory},
    {"continue", &Adapter::go_on},
    {"next", &Adapter::step},
    {"stepIn", &Adapter::step},
    {"stepOut", &Adapter::step_out},
    {"stepBack", &Adapter::step_back},
    {"reverseContinue", &Adapter::reverse_continue},
    {"pause", &Adapter::pause},
    {"disconnect", &Adapter::disconnect},
    {"terminate", &Adapter::terminate},
};

bool Adapter::serve() {
  while (!over_) {
    const auto text = messages_.read();
    if (!text) break;
    const auto message = parse(*text);
    if (!message || !message->is_object() || !message->contains("seq") ||
        !(*message)["seq"].is_number_integer())
      return false;
    if (message->value("type", Json()) == "request") handle(*message);
  }
  return over_;
}

void Adapter::handle(const Json& request) {
  Json response{{"type", "response"}, {"request_seq", request["seq"]}, {"success", true}};
  const Json command = request.value("command", Json());
  response["command"] = command.is_string() ? command : Json("");
  then_ = nullptr;
  try {
    const auto* const found = std::find_if(std::begin(kRequests), std::end(kRequests),
                                           [&](const Request& known) { return command == known.name; });
    if (found == std::end(kRequests)) throw Refusal{absl::StrCat("there is no request ", text_of(command))};
    const Json arguments = request.value("arguments", Json::object());
    response["body"] = (this->*found->answer)(arguments);
  } catch (const Refusal& refusal) {
    response["success"] = false;
    response["message"] = refusal.text;
  } catch (const Json::exception& wrong) {
    response["success"] = false;
    response["message"] = absl::StrCat("wrong arguments: ", wrong.what());
  }
  send(std::move(response));
  if (then_) then_();
}

void Adapter::send(Json message) {
  const std::lock_guard lock(mutex_);
  message["seq"] = ++sequence_;
  messages_.write(text_of(message));
}

void Adapter::event(const char* name, Json body) {
  send({{"type", "event"}, {"event", name}, {"body", std::move(body)}});
}

void Adapter::output(const std::string& text, const char* category) {
  event("output", {{"category", category}, {"output", text + "\n"}});
}

/// By the thread that runs the kernel.
void Adapter::tell(const Halt& halt) {
  if (halt.why == Halt::Why::kEnd) return tell_end(halt);
  constexpr const char* kReasons[] = {"entry", "step", "breakpoint", "pause", "exception"};
  Json body{{"reason", kReasons[static_cast<size_t>(halt.why)]},
            {"threadId", id_of(halt.thread)},
            {"allThreadsStopped", true}};
  if (halt.why == Halt::Why::kBreakpoint) body["hitBreakpointIds"] = {halt.breakpoint};
  if (!halt.text.empty()) body["text"] = halt.text;
  event("stopped", std::move(body));
}

void Adapter::tell_end(const Halt& halt) {
  output(halt.text, halt.ended_well ? "console" : "important");
  const std::vector<tools::Array> left = session_->buffers();
  const auto& buffers = session_->kernel().buffers;
  for (size_t i = 0; i < left.size(); ++i)
    output(absl::StrCat(buffers[i].name, ": ", left[i].text(), ": ", tools::elements_text(left[i])),
           "stdout");
  bool saved = true;
  for (const auto& [number, path] : outputs_)
    if (const absl::Status written = tools::write_file(path, tools::npy_of(left[number])); !written.ok()) {
      output(std::string(written.message()), "important");
      saved = false;
    }
  event("exited", {{"exitCode", halt.ended_well && saved ? 0 : 1}});
  event("terminated", Json::object());
}

KernelSession& Adapter::session() {
  if (!session_) throw Refusal{"there is no kernel: launch comes first"};
  return *session_;
}

Json Adapter::initialize(const Json& arguments) {
  lines_from_1_ = arguments.value("linesStartAt1", true);
  return {{"supportsConfigurationDoneRequest", true},
          {"supportsConditionalBreakpoints", true},
          {"supportsHitConditionalBreakpoints", true},
          {"supportsStepBack", true},
          {"supportsSteppingGranularity", true},
          {"supportsEvaluateForHovers", true},
          {"supportsReadMemoryRequest", true},
          {"supportsValueFormattingOptions", true},
          {"supportsTerminateRequest", true},
          {"exceptionBreakpointFilters",
           {{{"filter", "faults"}, {"label", "Accesses to memory that is not mapped"}, {"default", true}}}}};
}

Json Adapter::launch(const Json& arguments) {
  if (session_) throw Refusal{"a kernel has been launched"};
  tools::KernelOptions options;
  options.file = arguments.at("program").get<std::string>();
  options.device = arguments.value("device", options.device);
  options.buffers = arguments.value("buffers", options.buffers);
  for (const Json& uniform : arguments.value("uniforms", Json::array()))
    options.uniforms.push_back(uniform.is_string() ? uniform.get<std::string>() : text_of(uniform));
  options.outputs = arguments.value("outputs", options.outputs);
  options.threads = arguments.value("threads", options.threads);
  options.workgroup = arguments.value("workgroup", options.workgroup);
  options.workgroups = arguments.value("workgroups", options.workgroups);
  options.four_threads = arguments.value("fourThreads", options.four_threads);
  if (options.workgroup < 1 || options.workgroup > 256) throw Refusal{"a workgroup has 1 to 256 invocations"};
  const chip::Profile* const profile = chip::find_profile(options.device);
  if (!profile)
    throw Refusal{
        absl::StrCat("there is no board ", options.device, "; there are: ", daemon::device_names())};
  if (!chip::pipeline(profile->generation).has_compute_jobs)
    throw Refusal{absl::StrCat(options.device, " has no compute jobs")};
  auto kernel = tools::read_kernel(options, profile->generation);
  if (!kernel.ok()) throw Refusal{std::string(kernel.status().message())};
  auto outputs = tools::read_outputs(options, *kernel);
  if (!outputs.ok()) throw Refusal{std::string(outputs.status().message())};
  outputs_ = *std::move(outputs);
  std::error_code error;
  path_ = std::filesystem::absolute(options.file, error).lexically_normal().string();
  stops_on_entry_ = arguments.value("stopOnEntry", false);
  const bool four_threads = kernel->four_threads;
  const std::vector<uint64_t> words = kernel->words;
  session_ =
      std::make_unique<KernelSession>(*std::move(kernel), *profile, [this](const Halt& halt) { tell(halt); });
  session_->set_halts_at_faults(halts_at_faults_);
  const auto rules = qpu::broken_rules(profile->generation, four_threads, words);
  then_ = [this, rules] {
    for (const qpu::BrokenRule& rule : rules) output("hazard: " + rule.text, "important");
    event("initialized", Json::object());
  };
  return Json::object();
}

bool Adapter::is_kernel(const Json& source) const {
  std::error_code error;
  const std::string path = source.value("path", "");
  return path == path_ || std::filesystem::equivalent(path, path_, error);
}

/// A breakpoint of a line without code is one of the next line that has some.
Json Adapter::set_breakpoints(const Json& arguments) {
  KernelSession& to = session();
  const bool ours = is_kernel(arguments.at("source"));
  const std::vector<int>& lines = to.kernel().lines;
  Json told = Json::array();
  std::vector<Breakpoint> breakpoints;
  const Json all = arguments.value("breakpoints", Json::array());
  if (all.size() > kMostBreakpoints)
    throw Refusal{absl::StrCat("more than ", kMostBreakpoints, " breakpoints")};
  for (const Json& wanted : all) {
    const int64_t line = line_here(wanted.at("line").get<int32_t>());
    Breakpoint breakpoint{.id = next_breakpoint_++};
    Json answer{{"id", breakpoint.id}, {"verified", false}, {"line", wanted.at("line")}};
    const auto found = std::find_if(lines.begin(), lines.end(), [&](int l) { return l >= line; });
    const auto nearest =
        found == lines.end() ? found : std::min_element(found, lines.end(), [&](int a, int b) {
          return (a < line ? INT32_MAX : a) < (b < line ? INT32_MAX : b);
        });
    if (!ours || nearest == lines.end()) {
      answer["message"] = ours ? "no instruction stands there or below" : "another file";
      told.push_back(answer);
      continue;
    }
    const std::string condition = wanted.value("condition", ""), hits = wanted.value("hitCondition", "");
    std::string wrong;
    if (!condition.empty()) {
      auto parsed = parse_condition(condition, to.profile().generation, to.kernel());
      if (parsed.ok())
        breakpoint.condition = *parsed;
      else
        wrong = std::string(parsed.status().message());
    }
    if (!hits.empty() && (!absl::SimpleAtoi(hits, &breakpoint.hits) || breakpoint.hits == 0))
      wrong = absl::StrFormat("\"%s\" is no number of hits", hits);
    breakpoint.word = static_cast<uint32_t>(nearest - lines.begin());
    answer["line"] = line_there(*nearest);
    answer["verified"] = wrong.empty();
    if (!wrong.empty()) answer["message"] = wrong;
    told.push_back(answer);
    if (wrong.empty()) breakpoints.push_back(breakpoint);
  }
  if (ours) to.set_breakpoints(std::move(breakpoints));
  return {{"breakpoints", told}};
}

Json Adapter::set_exception_breakpoints(const Json& arguments) {
  const auto filters = arguments.at("filters").get<std::vector<std::string>>();
  halts_at_faults_ = std::find(filters.begin(), filters.end(), "faults") != filters.end();
  if (session_) session_->set_halts_at_faults(halts_at_faults_);
  return Json::object();
}

Json Adapter::configuration_done(const Json&) {
  then_ = [this, &to = session()] { to.begin(stops_on_entry_); };
  return Json::object();
}

/// What a thread works on, by its number.
std::string Adapter::place_of(uint64_t thread) {
  const tools::Kernel& kernel = session().kernel();
  const uint64_t each = (kernel.workgroup + 15) / 16, group = thread / each, first = thread % each * 16;
  return absl::StrFormat("workgroup %d:%d:%d, invocations %d to %d", group % kernel.workgroups[0],
                         group / kernel.workgroups[0] % kernel.workgroups[1],
                         group / kernel.workgroups[0] / kernel.workgroups[1], first,
                         std::min<uint64_t>(first + 16, kernel.workgroup) - 1);
}

Json Adapter::threads(const Json&) {
  Json all = Json::array();
  session().look([&](const std::map<uint64_t, ThreadState>& threads, const mmu::AddressSpace&) {
    for (const auto& [number, state] : threads) {
      if (state.thread) all.push_back({{"id", id_of(number)}, {"name", place_of(number)}});
    }
  });
  if (all.empty()) all.push_back({{"id", 1}, {"name", place_of(0)}});  // the protocol wants one at least
  return {{"threads", all}};
}

uint64_t Adapter::thread_of(const Json& arguments) const {
  const int id = arguments.at("threadId").get<int>();
  if (id < 1) throw Refusal{"threads are numbered from 1"};
  return static_cast<uint64_t>(id) - 1;
}

void Adapter::look(uint64_t thread, const std::function<void(const Place&)>& see) {
  bool found = false;
  KernelSession& of = session();
  const bool halted =
      of.look([&](const std::map<uint64_t, ThreadState>& threads, const mmu::AddressSpace& space) {
        const auto at = threads.find(thread);
        if (at == threads.end()) return;
        found = true;
        see({of.profile().generation, *at->second.thread, space, of.kernel()});
      });
  if (!halted) throw Refusal{"the kernel runs"};
  if (!found) throw Refusal{"that thread has not begun, or has ended"};
}

/// One frame: programs of QPUs have no stack.
Json Adapter::stack_trace(const Json& arguments) {
  Json frame;
  const uint64_t thread = thread_of(arguments);
  look(thread, [&](const Place& place) {
    const GpuAddr pc = place.thread.pc;
    frame = {{"id", id_of(thread)},
             {"name", session().text_of(pc)},
             {"line", 0},
             {"column", 0},
             {"instructionPointerReference", absl::StrFormat("0x%08x", pc)}};
    if (const int line = session().line_of(pc)) {
      frame["line"] = line_there(line);
      frame["source"] = {{"path", path_}, {"name", std::filesystem::path(path_).filename().string()}};
    }
  });
  return {{"stackFrames", Json::array({frame})}, {"totalFrames", 1}};
}

int Adapter::reference(const Branch& branch) {
  if (branches_.size() == kMostReferences) throw Refusal{"more variables than are kept until it goes on"};
  branches_.push_back(branch);
  return static_cast<int>(branches_.size());
}

Json Adapter::scopes(const Json& arguments) {
  const int frame = arguments.at("frameId").get<int>();
  if (frame < 1) throw Refusal{"there is no such frame"};
  Json all = Json::array();
  for (const Scope& scope : scopes_of(static_cast<uint64_t>(frame) - 1, session().profile().generation))
    all.push_back(
        {{"name", scope.name}, {"variablesReference", reference(scope.branch)}, {"expensive", false}});
  all[0]["presentationHint"] = "registers";
  return {{"scopes", all}};
}

Json Adapter::variable(const Variable& from) {
  Json one{{"name", from.name}, {"value", from.value}, {"variablesReference", 0}};
  if (!from.expression.empty()) one["evaluateName"] = from.expression;
  if (from.address) one["memoryReference"] = absl::StrFormat("0x%08x", *from.address);
  if (!from.parts) return one;
  one["variablesReference"] = reference(*from.parts);
  if (from.elements != 0) one["indexedVariables"] = from.elements;
  return one;
}

Json Adapter::variables(const Json& arguments) {
  const int number = arguments.at("variablesReference").get<int>();
  if (number < 1 || static_cast<size_t>(number) > branches_.size())
    throw Refusal{"there is no such variable now"};
  const Branch branch = branches_[static_cast<size_t>(number) - 1];
  const auto first = arguments.value("start", uint64_t{0});
  const auto asked = arguments.value("count", uint64_t{0});
  const bool hex = arguments.value("format", Json::object()).value("hex", false);
  std::vector<Variable> all;
  look(branch.thread, [&](const Place& place) {
    all = variables_of(branch, place, hex, first, asked == 0 ? kMostVariables : asked);
  });
  Json told = Json::array();
  for (const Variable& one : all) told.push_back(variable(one));
  return {{"variables", told}};
}

Json Adapter::evaluate(const Json& arguments) {
  const int frame = arguments.value("frameId", 0);
  if (frame < 1) throw Refusal{"no thread is chosen"};
  const auto text = arguments.at("expression").get<std::string>();
  const bool hex = arguments.value("format", Json::object()).value("hex", false);
  const auto thread = static_cast<uint64_t>(frame) - 1;
  Json result;
  look(thread, [&](const Place& place) {
    const auto operand = parse_operand(text, place.generation, place.kernel);
    if (!operand.ok()) throw Refusal{std::string(operand.status().message())};
    const auto value = value_of(*operand, place);
    if (!value.ok()) throw Refusal{std::string(value.status().message())};
    result = {{"result", value_text(*value, hex)}, {"variablesReference", 0}};
    if (operand->index) return;
    using Kind = Operand::Kind;
    if (operand->kind == Kind::kRegister)
      result["variablesReference"] = reference({Branch::Kind::kRegister, thread, operand->number});
    if (operand->kind == Kind::kFlag)
      result["variablesReference"] = reference({Branch::Kind::kFlag, thread, operand->number});
    if (operand->kind == Kind::kElement) {
      const tools::Array& array = place.kernel.buffers[operand->number].array;
      result["result"] = array.text();
      result["indexedVariables"] = array.elements();
      result["variablesReference"] = reference({Branch::Kind::kBuffer, thread, operand->number});
    }
  });
  return result;
}

Json Adapter::read_memory(const Json& arguments) {
  constexpr int64_t kMost = 1 << 20;
  uint32_t base;
  const auto reference = arguments.at("memoryReference").get<std::string>();
  if (!absl::SimpleHexAtoi(reference, &base)) throw Refusal{"\"" + reference + "\" is no address"};
  const auto offset = arguments.value("offset", int64_t{0}), count = arguments.at("count").get<int64_t>();
  constexpr int64_t kEnd = UINT32_MAX;
  if (offset < -kEnd || offset > kEnd || base + offset < 0 || base + offset > kEnd || count < 0 ||
      count > kMost)
    throw Refusal{"there is no such memory"};
  const int64_t address = base + offset;
  std::string bytes;
  const bool halted = session().look([&](const auto&, const mmu::AddressSpace& space) {
    for (int64_t at = address;
         at < address + count && at <= UINT32_MAX && space.is_mapped(static_cast<GpuAddr>(at)); ++at)
      bytes += static_cast<char>(space.memory().template load<uint8_t>(static_cast<GpuAddr>(at)));
  });
  if (!halted) throw Refusal{"the kernel runs"};
  return {{"address", absl::StrFormat("0x%08x", address)},
          {"unreadableBytes", count - static_cast<int64_t>(bytes.size())},
          {"data", absl::Base64Escape(bytes)}};
}

Json Adapter::go_on(const Json&) {
  then_ = [this, &to = session()] {
    branches_.clear();
    to.go_on();
  };
  return {{"allThreadsContinued", true}};
}

Json Adapter::step(const Json& arguments) {
  const bool whole_line = arguments.value("granularity", "statement") != "instruction";
  then_ = [this, &to = session(), thread = thread_of(arguments), whole_line] {
    branches_.clear();
    to.step(thread, whole_line);
  };
  return Json::object();
}

Json Adapter::step_out(const Json& arguments) {
  then_ = [this, &to = session(), thread = thread_of(arguments)] {
    branches_.clear();
    to.finish(thread);
  };
  return Json::object();
}

Json Adapter::step_back(const Json& arguments) {
  KernelSession& to = session();
  const uint64_t thread = thread_of(arguments);
  if (const absl::Status can = to.can_step_back(thread); !can.ok()) throw Refusal{std::string(can.message())};
  then_ = [this, &to, thread] {
    branches_.clear();
    to.step_back(thread);
  };
  return Json::object();
}

Json Adapter::reverse_continue(const Json&) {
  then_ = [this, &to = session()] {
    branches_.clear();
    to.go_back();
  };
  return Json::object();
}

Json Adapter::pause(const Json&) {
  session().pause();
  return Json::object();
}

Json Adapter::disconnect(const Json&) {
  over_ = true;
  return Json::object();
}

Json Adapter::terminate(const Json&) {
  then_ = [this, &to = session()] {
    to.end();
    event("terminated", Json::object());
  };
  return Json::object();
}

}  // namespace

bool serve_editor(Messages& messages) { return Adapter(messages).serve(); }

}  // namespace v3d::debugger
