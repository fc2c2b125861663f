/// @file What `v3demu status --json` prints of a daemon.
#include <algorithm>
#include <string>

#include "absl/strings/str_split.h"
#include "daemon/json_writer.h"
#include "daemon/node_name.h"
#include "daemon/server.h"

namespace v3d::daemon {
namespace {

using ioctl::queue_name;

/// Names come from clients, as bytes of any kind; JSON is UTF-8.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return text;
}

/// null: no limit.
void write_amount(const char* name, uint64_t value, JsonWriter* json) {
  json->key(name);
  if (value >= UINT64_MAX / 4)
    json->null();
  else
    json->value(value);
}

void write_errors(const GpuErrors& errors, JsonWriter* json) {
  json->key("gpu_errors").begin_object();
  for (size_t kind = 0; kind < kNumGpuErrorKinds; ++kind)
    json->field(kGpuErrorKinds[kind].word, errors.count(static_cast<GpuErrorKind>(kind)));
  json->key("last").begin_array();
  for (const GpuErrors::Error& error : errors.last())
    json->on_new_line()
        .begin_object()
        .field("number", error.number)
        .field("seconds_ago", static_cast<double>(ioctl::monotonic_ns() - error.time_ns) * 1e-9)
        .field("kind", row_of(error.kind).word)
        .field("queue", queue_name(error.queue))
        .field("job", error.job)
        .field("pid", error.pid)
        .field("program", printable(error.program))
        .field("text", printable(error.text))
        .end_object();
  json->end_array().end_object();
}

void write_limits(ioctl::Budget& budget, JsonWriter* json) {
  const auto accounts = budget.accounts();
  json->on_new_line().key("limits").begin_array();
  for (size_t i = 0; i < ioctl::kNumResources; ++i) {
    const auto resource = static_cast<ioctl::Resource>(i);
    const ioctl::ResourceLimit& limit = budget.limit(resource);
    json->on_new_line().begin_object().field("name", ioctl::resource_row(resource).name);
    write_amount("per_client", limit.per_client, json);
    write_amount("guaranteed", limit.guaranteed, json);
    write_amount("in_all", limit.in_all, json);
    json->field("set_aside", budget.used(resource)).key("holders").begin_array();
    for (const auto& account : accounts) {
      const uint64_t used = account->used(resource), refused = account->refusals(resource);
      if (used == 0 && refused == 0) continue;
      json->begin_object()
          .field("name", printable(account->name()))
          .field("used", used)
          .field("refused", refused)
          .end_object();
    }
    json->end_array().end_object();
  }
  json->end_array();
}

void write_client(const ioctl::File& file, JsonWriter* json) {
  const ioctl::ClientInfo& client = *file.client();
  const std::shared_ptr<const ioctl::User> user = client.user();
  json->on_new_line()
      .begin_object()
      .field("client", client.id)
      .field("program", printable(user->program))
      .field("pid", user->pid)
      .field("node", node_name(file))
      .field("bos", uint64_t{file.memory_use().objects.load()})
      .field("bytes", uint64_t{file.memory_use().bytes.load()})
      .key("jobs")
      .begin_object();
  for (size_t q = 0; q < client.jobs_done.size(); ++q)
    json->field(queue_name(static_cast<ioctl::Queue>(q)), client.jobs_done[q].load());
  json->end_object()
      .field("faults", client.mmu_faults.load())
      .field("failed", client.failed_jobs.load())
      .field("name", printable(file.client_name()))
      .end_object();
}

}  // namespace

std::string Server::status_json() {
  const chip::Profile& profile = kernel_.gpu().profile();
  JsonWriter json;
  json.begin_object()
      .field("pid", getpid())
      .field("up_seconds", static_cast<double>(ioctl::monotonic_ns() - started_ns_) * 1e-9)
      .field("device", profile.name)
      .field("description", profile.description)
      .field("kernel", kernel_.abi().name)
      .field("timing", timing_mode_name(options_.timing))
      .field("resets", uint64_t{kernel_.resets.load()});
  if (!options_.capture.empty()) json.field("capture", printable(options_.capture));
  json.on_new_line().key("engine").begin_array();
  for (const auto line : absl::StrSplit(kernel_.gpu().status(), '\n', absl::SkipEmpty()))
    json.value(std::string(line));
  json.end_array().on_new_line().key("queues").begin_array();
  const auto queues = scheduler_.status();
  for (size_t q = 0; q < queues.size(); ++q)
    json.on_new_line()
        .begin_object()
        .field("name", queue_name(static_cast<ioctl::Queue>(q)))
        .field("queued", uint64_t{queues[q].queued})
        .field("in_flight", uint64_t{queues[q].in_flight})
        .field("jobs", queues[q].jobs_done)
        .field("busy_ms", static_cast<double>(queues[q].busy_ns) * 1e-6)
        .end_object();
  json.end_array().on_new_line();
  write_errors(errors_, &json);
  const auto [files, connections, draining] = overview();
  json.field("open_nodes", uint64_t{files.size()})
      .field("connections", uint64_t{connections})
      .field("leaving", uint64_t{draining});
  write_limits(kernel_.budget(), &json);
  json.on_new_line().key("clients").begin_array();
  for (const auto& file : files) write_client(*file, &json);
  json.end_array().end_object();
  return json.take();
}

}  // namespace v3d::daemon
