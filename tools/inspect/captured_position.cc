#include "tools/inspect/captured_position.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/chip/profile.h"
#include "gpu/cle/executor.h"
#include "gpu/cle/packet_table.h"
#include "gpu/csd/configuration.h"
#include "gpu/csd/dispatch.h"
#include "gpu/tfu/tfu.h"
#include "tools/cli/captures/render_images.h"

namespace v3d::inspect {
namespace {

using daemon::CapturedJob;

/// Workers of jobs that need no order.
constexpr int kMostWorkers = 8;
/// TIDX values of bin jobs are the last ones, as gpu/device has them.
constexpr int kBinThreads = 8;

/// Has memory hold the lists of a render job, and no more of what it found than these: opening a capture
/// reads no pictures.
void take_lists(daemon::CaptureReader& reader, const CapturedJob& job) {
  constexpr uint32_t kMostBytes = 1 << 20, kMostPackets = 1 << 16;
  constexpr std::string_view kLists = "Start Address of Generic Tile List";
  uint32_t left = kMostBytes;
  const auto take = [&](uint32_t start, uint32_t end) {
    const uint32_t bytes = std::min(end - start, left);
    left -= bytes;
    return reader.part(job.context, start, bytes);
  };
  const device::ClJob list = job.cl();
  const Memory memory = take(list.rcl_start, list.rcl_end);
  cle::Packet packet;
  GpuAddr pc = list.rcl_start;
  for (uint32_t n = 0; n < kMostPackets && left > 0 && pc != list.rcl_end; ++n) {
    if (!cle::decode(memory, pc, reader.profile().generation, &packet)) break;
    pc += packet.length;
    if (packet.opcode == cle::Opcode::kStartAddressOfGenericTileList)
      take(packet.get(cle::field(kLists, "start")), packet.get(cle::field(kLists, "end")));
  }
}

std::string summary_of(const CapturedJob& job, Memory memory, const chip::Profile& profile) {
  switch (job.kind) {
    case CapturedJob::kBin:
      return absl::StrFormat("list at 0x%08x", job.cl().bcl_start);
    case CapturedJob::kRender: {
      if (job.surfaces) return absl::StrFormat("%dx%d", job.surfaces->width, job.surfaces->height);
      tools::ByteOrders orders;  // no picture is made
      const auto images =
          tools::stored_images(memory, profile.generation, job.cl().rcl_start, job.cl().rcl_end, &orders);
      if (images.empty()) return "stores no colours";
      return absl::StrFormat("%dx%d, %s", images[0].width, images[0].height,
                             images.size() == 1 ? "1 image" : absl::StrCat(images.size(), " images"));
    }
    case CapturedJob::kCsd: {
      const csd::Configuration c = csd::decode(job.csd().cfg, profile);
      return absl::StrFormat("%dx%dx%d workgroups, program 0x%08x", c.wg_count[0], c.wg_count[1],
                             c.wg_count[2], c.code);
    }
    case CapturedJob::kUser:
      return absl::StrFormat("%d programs", job.programs->programs.size());
    default:
      return absl::StrFormat("%dx%d to 0x%08x", job.tfu().ios & 0xffff, job.tfu().ios >> 16, job.tfu().ioa);
  }
}

}  // namespace

CapturedPosition::CapturedPosition(qpu::Compiler* compiler)
    : compiler_(compiler),
      together_(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostWorkers) - 1) {}

absl::StatusOr<std::unique_ptr<CapturedPosition>> CapturedPosition::open(const std::string& path,
                                                                         qpu::Compiler* compiler) {
  std::unique_ptr<CapturedPosition> position(new CapturedPosition(compiler));
  // What the answers take comes on top of what the reader does.
  auto reader = daemon::CaptureReader::open(path, nullptr, daemon::CaptureReader::most_memory() / 2);
  if (!reader.ok()) return reader.status();
  position->reader_ = *std::move(reader);
  position->profile_ = &position->reader_->profile();
  while (true) {
    absl::StatusOr<CapturedJob> job = position->reader_->next();
    if (absl::IsNotFound(job.status())) break;
    if (!job.ok()) return job.status();
    if (job->kind == CapturedJob::kRender && !job->surfaces) take_lists(*position->reader_, *job);
    const Memory memory = position->reader_->part(job->context, 0, 0);
    position->summaries_.push_back(summary_of(*job, memory, position->profile()));
    position->jobs_.push_back(*std::move(job));
  }
  position->rewind();
  return position;
}

void CapturedPosition::rewind() {
  is_written_ = is_stale_ = false;
  bin_.reset();
  clear_values_.clear();
  number_ = 0;
  reader_->rewind();
}

/// What jobs leave in memory, the capture has: none of them needs to be run.
absl::Status CapturedPosition::advance() {
  if (is_written_) restore();
  if (number_ != 0 && job().surfaces) clear_values_[job().context].take(*job().surfaces);
  const absl::StatusOr<CapturedJob> next = reader_->next();
  if (!next.ok()) return next.status();
  ++number_;
  return absl::OkStatus();
}

absl::Status CapturedPosition::seek(uint32_t number) {
  if (number == 0 || number > jobs_.size())
    return absl::NotFoundError(absl::StrFormat("no job %d; the capture holds %d", number, jobs_.size()));
  if (number == number_ && !is_stale_) return absl::OkStatus();
  const CapturedJob& wanted = jobs_[number - 1];
  uint32_t bin = 0;
  if (wanted.kind == CapturedJob::kRender && wanted.submission != 0)
    for (uint32_t n = 1; n < number; ++n) {
      const CapturedJob& job = jobs_[n - 1];
      if (job.kind == CapturedJob::kBin && job.context == wanted.context &&
          job.submission == wanted.submission)
        bin = n;
    }
  if (is_stale_ || number_ > (bin != 0 ? bin : number)) rewind();
  bin_.reset();
  std::shared_ptr<draw::BinResult> binned;
  while (number_ < number) {
    if (number_ == bin && bin != 0) {
      run({.alone = true});
      binned = bin_;
    }
    if (absl::Status status = advance(); !status.ok()) return status;
  }
  bin_ = std::move(binned);
  return absl::OkStatus();
}

absl::Status CapturedPosition::scan(uint32_t number, const std::function<void(uint32_t)>& see) {
  if (number == 0 || number > jobs_.size())
    return absl::NotFoundError(absl::StrFormat("no job %d; the capture holds %d", number, jobs_.size()));
  rewind();
  while (number_ < number) {
    if (absl::Status status = advance(); !status.ok()) return status;
    see(number_);
  }
  is_stale_ = true;  // nothing was binned
  return absl::OkStatus();
}

std::optional<uint32_t> CapturedPosition::found(GpuAddr address) {
  const auto page = reader_->found(address);
  if (!page) return std::nullopt;
  uint32_t word;
  std::memcpy(&word, page->data() + address % mmu::kPageSize, sizeof word);
  return word;
}

void CapturedPosition::restore() {
  if (number_ == 0) return;
  if (is_written_) reader_->restore();
  is_written_ = false;
  space().take_faults();
}

device::Context& CapturedPosition::context() {
  is_written_ = true;
  patch();
  return reader_->context(job().context);
}

Ran CapturedPosition::run(const RunWith& with) {
  restore();
  is_written_ = true;
  patch();
  return execute(job(), with);
}

bool CapturedPosition::set_patches(std::vector<PatchedWord> patches) {
  if (patches == patches_) return false;
  patches_ = std::move(patches);
  restore();
  is_stale_ = true;
  return true;
}

void CapturedPosition::patch() {
  for (const PatchedWord& patched : patches_)
    if (space().is_mapped(patched.address)) space().memory().store(patched.address, patched.word);
}

Ran CapturedPosition::in_context(uint32_t client, const RunWith& with,
                                 const std::function<void(JobContext&)>& work) {
  auto& caches = with.interpreted ? interpreted_ : compiled_;
  std::unique_ptr<qpu::ProgramCache>& cache = caches[client];
  if (!cache)
    cache = std::make_unique<qpu::ProgramCache>(profile().generation, with.interpreted ? nullptr : compiler_);
  JobControl own;
  JobControl& control = with.control != nullptr ? *with.control : own;
  JobError error;
  perf::JobCounts counts;
  ListProgress progress(static_cast<uint64_t>(profile().qpu_rate() * profile().qpu_count()));
  JobContext context{.memory = space().memory(),
                     .profile = &profile(),
                     .pool = with.alone ? &alone_ : &together_,
                     .programs = cache.get(),
                     .counts = &counts,
                     .error = &error,
                     .cancel = &control.cancelled(),
                     .watch = with.threads,
                     .work = with.units,
                     .control = &control,
                     .progress = &progress};
  if (with.instruction_limit) context.instruction_limit = *with.instruction_limit;
  try {
    work(context);
  } catch (const std::bad_alloc&) {
    error.set("out of memory");
  }
  return {!error.failed(), error.message()};
}

Ran CapturedPosition::execute(const CapturedJob& captured, const RunWith& with) {
  if (captured.kind == CapturedJob::kUser)
    return {false, "user programs are not run here: what they do hangs on those of the jobs before"};
  return in_context(captured.context, with, [&](JobContext& context) {
    const device::ClJob list = captured.cl();
    switch (captured.kind) {
      case CapturedJob::kBin:
        context.first_tidx = static_cast<uint32_t>(4 * profile().qpu_count() - kBinThreads);
        bin_ = cle::run_bin_list(context, list.bcl_start, list.bcl_end);
        break;
      case CapturedJob::kRender: {
        cle::ClearValues clear = clear_values_[captured.context];
        if (captured.surfaces)
          cle::run_surfaces(context, *captured.surfaces, bin_.get(), &clear);
        else
          cle::run_render_list(context, list.rcl_start, list.rcl_end, list.qma, bin_.get());
        break;
      }
      case CapturedJob::kCsd:
        csd::dispatch(context, captured.csd().cfg, captured.csd().indirect, &space());
        break;
      default:
        tfu::run(context, captured.tfu());
    }
  });
}

absl::StatusOr<vpm::ShadedVertices> CapturedPosition::shade(const draw::Draw& draw, vpm::Phase phase) {
  restore();
  is_written_ = true;
  patch();
  vpm::ShadedVertices shaded;
  const Ran ran = in_context(job().context, {.alone = true}, [&](JobContext& context) {
    shaded = vpm::VertexStages(context).shade(draw, phase);
  });
  if (!ran.done) return absl::InternalError(ran.message);
  return shaded;
}

}  // namespace v3d::inspect
