#include "tools/inspect/failure_page.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/mmu/address_space.h"
#include "gpu/mmu/fault_place.h"
#include "gpu/qpu/run/observer.h"
#include "gpu/qpu/run/thread.h"
#include "gpu/qpu/run/vc4_thread.h"
#include "tools/cli/captures/job_listing.h"
#include "tools/inspect/captured_position.h"
#include "tools/inspect/thread_steps.h"
#include "tools/inspect/unit_watch.h"

namespace v3d::inspect {
namespace {

/// A thread that executed so many is one that does not end, where the job hangs.
constexpr uint64_t kLongThread = 1 << 20;
constexpr uint64_t kSteps = 6;  ///< that are shown before the end
constexpr size_t kListingLines = 5, kMostReferences = 6;
using Range = mmu::AddressSpace::Range;

/// Which thread failed, and when.
struct Failure {
  std::string stage;
  uint64_t thread = 0, executed = 0;
  std::optional<uint32_t> draw;
  std::string pixels;
};

/// Finds the first thread that faults, fails or does not end.
class FailureWatch final : public qpu::ThreadWatch {
 public:
  /// @param long_threads  whether one that executes kLongThread is it
  FailureWatch(mmu::AddressSpace& space, bool long_threads) : space_(space), long_threads_(long_threads) {}

  void start(const char* stage, qpu::Thread& thread) override {
    auto& one = observers_[&thread];
    one = std::make_unique<Thread>(*this, stage, threads_[stage]++);
    thread.observer = one.get();
  }
  void start_vc4(const char* stage, qpu::vc4::Thread& thread) override {
    auto& one = vc4_observers_[&thread];
    one = std::make_unique<Vc4Thread>(*this, stage, threads_[stage]++);
    thread.observer = one.get();
  }

  void set_draw(uint32_t draw) { draw_ = draw; }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  template <typename AnyThread>
  void look(const char* stage, uint64_t number, uint64_t executed, const AnyThread& thread,
            const char* error) {
    if (failure_) return;
    const bool is_long = long_threads_ && executed >= kLongThread;
    if (!error && !is_long && space_.take_faults().count == 0) return;
    failure_ = Failure{stage, number, executed, draw_, ""};
    if (std::string_view(stage) != "fragment") return;
    for (int lane = 0; lane < kLanes; lane += 4)
      absl::StrAppendFormat(&failure_->pixels, "%s%d:%d", lane ? ", " : "", uint32_t{thread.pixel_x[lane]},
                            uint32_t{thread.pixel_y[lane]});
  }

  class Thread final : public qpu::Observer {
   public:
    Thread(FailureWatch& watch, const char* stage, uint64_t number)
        : watch_(watch), stage_(stage), number_(number) {}
    void before(const qpu::Thread&, uint64_t, const qpu::Instruction*) override { ++executed_; }
    void after(const qpu::Thread& thread, const char* error) override {
      watch_.look(stage_, number_, executed_, thread, error);
    }
    void finished(const qpu::Thread&, Next) override {}

   private:
    FailureWatch& watch_;
    const char* const stage_;
    const uint64_t number_;
    uint64_t executed_ = 0;
  };
  class Vc4Thread final : public qpu::vc4::Observer {
   public:
    Vc4Thread(FailureWatch& watch, const char* stage, uint64_t number)
        : watch_(watch), stage_(stage), number_(number) {}
    void before(const qpu::vc4::Thread&, uint64_t) override { ++executed_; }
    void after(const qpu::vc4::Thread& thread, uint64_t, const char* error) override {
      watch_.look(stage_, number_, executed_, thread, error);
    }
    void finished(const qpu::vc4::Thread&, Next) override {}

   private:
    FailureWatch& watch_;
    const char* const stage_;
    const uint64_t number_;
    uint64_t executed_ = 0;
  };

  mmu::AddressSpace& space_;
  const bool long_threads_;
  std::map<std::string, uint64_t> threads_;  // that began, by stage
  std::map<const void*, std::unique_ptr<Thread>> observers_;
  std::map<const void*, std::unique_ptr<Vc4Thread>> vc4_observers_;
  std::optional<uint32_t> draw_;
  std::optional<Failure> failure_;
};

/// Tells the threads which draw they are of.
class DrawWatch final : public UnitWatch {
 public:
  DrawWatch(qpu::ThreadWatch& threads, FailureWatch* failure) : tile_(threads, failure), failure_(failure) {}
  void begin_vertices(uint32_t draw, uint32_t, uint32_t) override {
    if (failure_) failure_->set_draw(draw);
  }
  TileWatch& begin_tile(size_t, size_t, uint32_t, uint32_t) override { return tile_; }

 protected:
  void begin_tiles(size_t) override {}

 private:
  class Tile final : public UnwatchedTile {
   public:
    Tile(qpu::ThreadWatch& threads, FailureWatch* failure) : threads_(threads), failure_(failure) {}
    qpu::ThreadWatch* threads() override { return &threads_; }
    void begin_draw(uint32_t draw, const perf::Counts&) override {
      if (failure_) failure_->set_draw(draw);
    }

   private:
    qpu::ThreadWatch& threads_;
    FailureWatch* const failure_;
  };
  Tile tile_;
  FailureWatch* const failure_;
};

std::vector<std::string> listing_of(CapturedPosition& position) {
  std::vector<std::string> lines;
  tools::list_job(position.job(), position.space(), position.profile(), [&](std::string_view line) {
    if (lines.size() < 200'000) lines.emplace_back(line);
  });
  return lines;
}

/// Addresses that a text names.
std::vector<uint32_t> addresses_in(std::string_view text) {
  std::vector<uint32_t> addresses;
  for (size_t at = text.find("0x"); at != text.npos; at = text.find("0x", at + 2)) {
    uint32_t address;
    if (at + 10 <= text.size() && absl::SimpleHexAtoi(std::string(text.substr(at, 10)), &address))
      addresses.push_back(address);
  }
  return addresses;
}

std::string words_of(mmu::AddressSpace& space, uint64_t address, uint64_t end) {
  std::string text;
  for (uint64_t at = address; at + 4 <= end && at < address + 32; at += 4)
    absl::StrAppendFormat(&text, " %08x", space.memory().load<uint32_t>(static_cast<GpuAddr>(at)));
  return text;
}

class Page {
 public:
  Page(CapturedPosition& position, uint32_t number) : position_(position), number_(number) {}

  std::string write(const Ran& ran, const mmu::Faults& faults, const mmu::FaultPlace& place) {
    const bool hangs = !ran.done;
    absl::StrAppendFormat(&text_, "job %d of %d, %s of client %d (%s) %s\n", number_, position_.jobs().size(),
                          tools::kind_name(position_.job()), position_.job().context,
                          position_.summaries()[number_ - 1],
                          hangs ? "does not end well: " + ran.message : "accesses memory that is not mapped");
    if (faults.count)
      absl::StrAppendFormat(
          &text_, "%d MMU faults, the first at 0x%08x%s\n", faults.count, faults.first_address,
          place.stage ? absl::StrFormat(", by the %s program at 0x%08x", place.stage, place.program)
                      : ", by no QPU program");
    write_thread(hangs && faults.count == 0);
    const std::vector<std::string> listing = listing_of(position_);
    if (faults.count) write_memory(faults.first_address, listing);
    write_listing(ran.message, listing);
    write_neighbours();
    return std::move(text_);
  }

 private:
  void head(const char* text) { absl::StrAppend(&text_, "\n", text, "\n"); }

  void write_thread(bool hangs) {
    position_.restore();
    FailureWatch watch(position_.space(), hangs);
    DrawWatch units(watch, &watch);
    RunWith with{.alone = true, .interpreted = true, .threads = &watch, .units = &units};
    if (hangs) with.instruction_limit = 2 * kLongThread;
    position_.run(with);
    const std::optional<Failure> failure = watch.failure();
    if (!failure) return;
    StepsWanted wanted{.stage = failure->stage, .thread = failure->thread, .first = 0, .count = kSteps};
    wanted.first = failure->executed > kSteps ? failure->executed - kSteps : 0;
    ThreadSteps threads(position_.profile().generation, wanted, nullptr);
    DrawWatch again(threads, nullptr);
    with.threads = &threads;
    with.units = &again;
    position_.run(with);
    write_steps(*failure, threads.take());
  }

  void write_steps(const Failure& failure, const Steps& steps) {
    head("The thread");
    absl::StrAppendFormat(&text_, "  %s thread %d of program 0x%08x, after %d instructions%s\n",
                          failure.stage, failure.thread, steps.program, failure.executed,
                          failure.executed >= kLongThread ? ", in a loop that does not end" : "");
    if (failure.draw) absl::StrAppendFormat(&text_, "  of draw %d of the job, from 0\n", *failure.draw);
    if (!failure.pixels.empty()) absl::StrAppend(&text_, "  quads at ", failure.pixels, "\n");
    if (!steps.error.empty()) absl::StrAppend(&text_, "  it cannot go on: ", steps.error, "\n");
    const size_t count = std::min<size_t>({steps.steps.size(), kSteps, failure.executed});
    for (size_t n = 0; n < count; ++n) {
      const Step& step = steps.steps[n];
      const bool last = n + 1 == count;
      absl::StrAppendFormat(&text_, "%s %4d  0x%08x  %s\n", last ? " >" : "  ", step.index, step.address,
                            step.text);
      // Behind the last step a trace says that it is one.
      if (last) absl::StrAppend(&text_, step.detail.substr(0, step.detail.find("\n      (")), "\n");
    }
  }
  /// What is mapped beside an address, and who names it.
  void write_memory(GpuAddr address, const std::vector<std::string>& listing) {
    head("The memory around");
    mmu::AddressSpace& space = position_.space();
    const std::vector<Range> ranges = space.mapped_ranges();
    const auto above =
        std::find_if(ranges.begin(), ranges.end(), [&](const Range& r) { return r.address > address; });
    if (above != ranges.begin()) {
      const Range& below = *(above - 1);
      const uint64_t end = below.address + below.size;
      absl::StrAppendFormat(&text_, "  0x%08x to 0x%08x is mapped, and ends %d bytes before 0x%08x\n",
                            below.address, end - 1, address - end, address);
      absl::StrAppend(&text_, "    its last words:", words_of(space, end - 32, end), "\n");
      write_references(below, listing);
    }
    if (above != ranges.end()) {
      absl::StrAppendFormat(&text_, "  0x%08x to 0x%08x is mapped, and begins %d bytes behind it\n",
                            above->address, above->address + above->size - 1, above->address - address);
      absl::StrAppend(&text_,
                      "    its first words:", words_of(space, above->address, above->address + above->size),
                      "\n");
      write_references(*above, listing);
    }
  }

  void write_references(const Range& range, const std::vector<std::string>& listing) {
    size_t count = 0;
    for (const std::string& line : listing) {
      const size_t text = line.find_first_not_of(' ');
      if (text == line.npos || line.compare(text, 2, "0x") == 0) continue;  // which stands there
      const std::vector<uint32_t> addresses = addresses_in(line);
      const bool names = std::any_of(addresses.begin(), addresses.end(), [&](uint32_t address) {
        return address >= range.address && address - range.address < range.size;
      });
      if (!names) continue;
      if (count++ == kMostReferences) break;
      absl::StrAppend(&text_, "    named by: ", line, "\n");
    }
  }

  /// The packets at the place that the message names.
  void write_listing(const std::string& message, const std::vector<std::string>& listing) {
    for (const uint32_t address : addresses_in(message)) {
      const std::string place = absl::StrFormat("0x%08x", address);
      const auto at = std::find_if(listing.begin(), listing.end(),
                                   [&](const std::string& line) { return line.find(place) != line.npos; });
      if (at == listing.end()) continue;
      head(("What the job has at " + place).c_str());
      const auto line = static_cast<size_t>(at - listing.begin());
      for (size_t n = line < kListingLines ? 0 : line - kListingLines;
           n < listing.size() && n <= line + kListingLines; ++n)
        absl::StrAppend(&text_, n == line ? " >" : "  ", listing[n], "\n");
    }
  }

  void write_neighbours() {
    head("Before and after");
    for (uint32_t n = number_ > 2 ? number_ - 2 : 1; n <= number_ + 2 && n <= position_.jobs().size(); ++n) {
      const daemon::CapturedJob& job = position_.jobs()[n - 1];
      absl::StrAppendFormat(&text_, "%s job %d: %s of client %d, %s\n", n == number_ ? " >" : "  ", n,
                            tools::kind_name(job), job.context, position_.summaries()[n - 1]);
    }
    text_ += "\n";
  }

  CapturedPosition& position_;
  const uint32_t number_;
  std::string text_;
};

}  // namespace

absl::StatusOr<FailurePages> explain_failures(const std::string& path, qpu::Compiler* compiler) {
  auto opened = CapturedPosition::open(path, compiler);
  if (!opened.ok()) return opened.status();
  CapturedPosition& position = **opened;
  FailurePages pages{.jobs = static_cast<uint32_t>(position.jobs().size())};
  for (uint32_t number = 1; number <= pages.jobs; ++number) {
    if (absl::Status status = position.seek(number); !status.ok()) return status;
    if (position.job().kind == daemon::CapturedJob::kUser) continue;  // which are not run alone
    const Ran ran = position.run({});
    const mmu::Faults faults = position.space().take_faults();
    const mmu::FaultPlace place = mmu::take_fault_place(position.space());
    if (ran.done && faults.count == 0) continue;
    if (pages.failed++ >= kMostFailurePages) continue;
    pages.text += Page(position, number).write(ran, faults, place);
  }
  position.restore();
  return pages;
}

}  // namespace v3d::inspect
