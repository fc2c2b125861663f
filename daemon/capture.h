/// A capture holds every job with the memory of its client at the moment it starts, in one self-contained
/// file (.v3dcap).
///
/// File: Header, then records {u32 type, u32 payload bytes, payload}, little endian. Pages are stored once by
/// content.
///   kPage  4096 bytes; pages are numbered from 1 in file order, page 0 is all zero
///   kPages several of these, so that a reader comes past them without reading
///   kMaps  u32 context, then {u32 address, u32 pages}: all mapped ranges of the context, when they changed
///   kSets  u32 context, then {u32 address, u32 page number}: pages that are not what the job before found
///   kJob   context, kind, submission and words of a CapturedJob
///   kEnd   u32 jobs in the file; the last record, written when the daemon leaves. A file without it is cut:
///          the daemon died, or the capture stopped at a write error
///   kFrame what the surfaces of a VideoCore IV are: of the render job that follows, whose words are those of
///          its binning list
///   kPrograms the user programs of the kUser job that follows, whose words are 0 (captured_programs.h)
///   kAfter u32 context, u32 ranges, {u32 address, u32 pages} for each, then {u32 address, u32 page number},
///          both ascending: what memory held once all jobs before had ended. Of the ranges all is known:
///          pages that are not named held what they held before the last job. It changes no memory: what a
///          later job found is in kSets. Recordings of boards have it (recorder/v3drec.c)
///   kChunk several pages, numbered like those of kPage, compressed (page_chunk.h)
///   kSubmission SUBMIT_CL of VideoCore IV, of which the kernel's checks make the jobs of the one or two kJob
///          records right behind it, whose words are 0 (captured_submission.h)
///   kAfterHashes as kAfter, with {u32 address, u64 page_hash()} for each page: what they held is not told
/// Format 1 had no kEnd, format 2 no kFrame, format 3 no kPrograms, format 4 no kAfter, format 5 none of the
/// last four.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/capture_file.h"
#include "daemon/captured_programs.h"
#include "daemon/page_chunk.h"
#include "gpu/device/device.h"

namespace v3d::daemon {

/// The last byte of the magic. Written is the last of those that are read.
inline constexpr uint8_t kFirstCaptureFormat = 1, kCaptureFormat = 6;
inline constexpr char kCaptureMagic[8] = {'V', '3', 'D', 'C', 'A', 'P', 0, kCaptureFormat};

struct CapturedJob {
  enum Kind : uint32_t { kBin = 0, kRender = 1, kCsd = 2, kTfu = 3, kUser = 4 };
  uint32_t context = 0;  ///< numbered from 1 in order of appearance
  uint32_t kind = kBin;
  uint32_t submission = 0;  ///< a render job takes the bin result of the bin job of the same number; 0 = none
  std::array<uint32_t, 16> words{};  ///< ClJob, CsdJob (cfg, indirect) or TfuJob in field order
  /// Of render jobs of VideoCore IV, in place of a rendering list.
  std::shared_ptr<const device::SurfaceJob> surfaces = nullptr;
  /// Of jobs of user programs.
  std::shared_ptr<const CapturedPrograms> programs = nullptr;

  static CapturedJob of(const device::ClJob& job, bool render, uint32_t submission);
  static CapturedJob of(const device::CsdJob& job);
  static CapturedJob of(const device::TfuJob& job);
  static CapturedJob of(CapturedPrograms job);
  device::ClJob cl() const;
  device::CsdJob csd() const;
  device::TfuJob tfu() const;
};

/// What the memory of a client held after jobs, where the capture was recorded.
struct CapturedAfter {
  uint32_t context = 0;
  /// Of which it is known, ascending and without overlaps: BOs.
  std::vector<mmu::AddressSpace::Range> ranges = {};
  std::unordered_map<uint32_t, uint32_t> changed = {};  ///< page numbers by address
  std::unordered_map<uint32_t, uint64_t> hashes = {};   ///< of pages that changed to what is not told
};

/// What a recording says of a page whose contents it does not tell.
uint64_t page_hash(std::span<const uint8_t, mmu::kPageSize> page);

/// Thread safe. A write error is logged once and ends the capture there, without an end record; jobs go on.
class CaptureWriter {
 public:
  /// Unavailable, with the path and the reason, when not even the header can be written.
  static absl::StatusOr<std::unique_ptr<CaptureWriter>> create(const std::string& path, const char* profile);
  /// Writes the end record.
  ~CaptureWriter();

  /// Held while a captured job runs: jobs of a captured daemon run one at a time, so that each record shows
  /// memory exactly as its job found it. Empty when the capture has stopped.
  std::unique_lock<std::mutex> begin(const mmu::AddressSpace& space, const CapturedJob& job);
  /// The space is about to be destroyed; another one may come to stand at its address.
  void forget(const mmu::AddressSpace& space);

 private:
  struct Context {
    uint32_t number;
    std::vector<mmu::AddressSpace::Range> maps;
    std::unordered_map<uint32_t, uint32_t> pages;  // address -> page number
  };
  struct Key {
    uint64_t low, high;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const { return k.low; }
  };

  CaptureWriter(std::string path, FILE* file) : path_(std::move(path)), file_(file) {}
  void put(const void* data, size_t bytes);
  void stop(int error);
  void record(uint32_t type, const void* payload, size_t bytes);
  uint32_t page_number(const uint8_t* page);
  void write_pages();
  void write_memory(Context& context, const mmu::AddressSpace& space);

  const std::string path_;
  std::mutex mutex_;  // protects everything below, and serialises the jobs
  FILE* file_;        // nullptr: the capture has stopped
  uint32_t jobs_ = 0;
  uint32_t last_context_ = 0;
  std::unordered_map<const mmu::AddressSpace*, Context> contexts_;
  std::unordered_map<Key, uint32_t, KeyHash> known_pages_;
  std::vector<CapturedPage> new_pages_;  // that are not written yet
};

/// How many jobs a capture holds, by its records alone. An error as CaptureReader::next() gives it when the
/// file is cut or malformed.
absl::StatusOr<uint32_t> count_captured_jobs(const std::string& path);

/// Reads a capture and keeps one address space per context in the state of the current job. Malformed files
/// give an error. Pages are read from the file when somebody asks for the memory of a context: who only goes
/// from job to job does not need them. It takes twice the memory that the programs had, of which eight bytes
/// of a file fill a page with what another one holds. Pages of zeros take none. Pages that are
/// compressed in the file are decompressed as they come, and count as memory of the programs.
class CaptureReader {
 public:
  /// Half of what the host has, or what this process may have of it.
  static uint64_t most_memory();
  /// @param compiler     see device::Context
  /// @param limit        bytes of the programs' memory and of what describes it; more is ResourceExhausted
  static absl::StatusOr<std::unique_ptr<CaptureReader>> open(const std::string& path,
                                                             qpu::Compiler* compiler = nullptr,
                                                             uint64_t limit = most_memory());
  using Page = CaptureFile::Page;

  const chip::Profile& profile() const { return *profile_; }
  int format() const { return format_; }
  /// Advances to the next job. NotFound at the end of the capture: after its end record or, in format 1,
  /// which has none, at the end of the file. DataLoss when the file is cut.
  absl::StatusOr<CapturedJob> next();
  /// Before the first job again. What next() then returns is as it was.
  void rewind();
  /// The context of a job that next() returned, whose memory holds what that job found.
  device::Context& context(uint32_t number);
  /// Its memory, in which only so many bytes from an address on hold what they should.
  Memory part(uint32_t number, GpuAddr address, uint64_t bytes);
  /// What the job that next() returned last found in a page of its memory; nothing: it is not mapped. Until
  /// anything else is called.
  std::optional<Page> found(GpuAddr address);
  /// Has the memory of the job that next() returned last hold what the capture says that this job found, as
  /// often as is wanted: jobs that were run here left there what they wrote.
  void restore();
  /// The same before jobs that are all run, one after the other: what they wrote, their program may have
  /// replaced by what was there before, and then no record says so. A render job finds what its bin job left
  /// if that one stands right before it.
  void restore_found();

  /// What is recorded of the memory after the job that next() returned last, all pages of which are mapped;
  /// nothing where nothing is. Errors as those of next().
  absl::StatusOr<std::optional<CapturedAfter>> take_after();
  /// A page of one of its ranges that is none of its hashes. Until next() or take_after() is called.
  Page page_after(const CapturedAfter& after, GpuAddr address) const;

 private:
  struct Mapped {
    std::unique_ptr<device::Context> context;
    std::vector<mmu::AddressSpace::Range> ranges;
    std::vector<bool> filled = {};                        // by page of the address space; empty: none is
    std::unordered_map<uint32_t, uint32_t> numbers = {};  // of the pages that were set, by address
    std::vector<uint32_t> changed = {};                   // addresses of pages that memory does not hold yet
    bool all_changed = false;                             // any page may be another one
    uint64_t bytes = 0;                                   // of these, and of the page table
    std::vector<CapturedPage> copy = {};  // at kCopyAddress: what was made of the last submission
  };
  explicit CaptureReader(uint64_t limit) : limit_(limit) {}
  absl::Status take_memory(uint64_t* of, uint64_t bytes);
  absl::StatusOr<CapturedJob> take_job(const std::vector<uint32_t>& words, uint32_t bytes);
  absl::Status take_frame(const std::vector<uint32_t>& words, uint32_t bytes);
  absl::Status take_programs(const std::vector<uint32_t>& words, uint32_t bytes);
  absl::Status take_submission(const std::vector<uint32_t>& words, uint32_t bytes);
  absl::Status place_copy(Mapped& mapped, const std::vector<uint8_t>& bytes);
  absl::Status use_submission(CapturedJob* job);
  absl::Status map_ranges(Mapped& mapped, const std::vector<mmu::AddressSpace::Range>& ranges);
  absl::Status apply_maps(const std::vector<uint32_t>& words);
  absl::Status apply_sets(const std::vector<uint32_t>& words);
  absl::Status change_ranges(Mapped& mapped, std::vector<mmu::AddressSpace::Range> ranges);
  absl::Status take_chunk(uint32_t bytes);
  void drop_copy(Mapped& mapped);
  absl::Status take_pages(uint32_t type, uint32_t bytes);
  void forget_memory(Mapped& mapped);
  void forget_pages();
  void fill(Mapped& mapped);
  void set_all(Mapped& mapped);
  Page page_before(const Mapped& mapped, GpuAddr address) const;
  absl::Status take_after_ranges(const std::vector<uint32_t>& words, CapturedAfter* after) const;
  absl::StatusOr<CapturedAfter> after_of(uint32_t type, const std::vector<uint32_t>& words, uint32_t bytes);
  absl::StatusOr<uint32_t> next_head(uint32_t* bytes);
  absl::StatusOr<Mapped*> find(uint32_t number);

  const uint64_t limit_;
  uint64_t memory_ = 0;  // of all contexts
  std::unique_ptr<CaptureFile> file_;
  int format_ = 0;
  uint32_t jobs_ = 0;            // so far
  uint32_t context_of_job_ = 0;  // of the last one
  uint32_t binned_ = 0;          // submission of the bin job in the last record; 0: none
  bool follows_bin_ = false;     // the last job
  std::optional<std::pair<uint32_t, uint32_t>> head_;  // type and bytes of a record whose payload is not read
  const chip::Profile* profile_ = nullptr;
  qpu::Compiler* compiler_ = nullptr;
  std::shared_ptr<const device::SurfaceJob> frame_;      // of the next job
  std::shared_ptr<const device::SurfaceJob> submitted_;  // of the next one or two
  uint32_t submitter_ = 0;                               // context of that
  std::shared_ptr<const CapturedPrograms> programs_;     // the same
  uint64_t decompressed_ = 0;                            // bytes of pages that were compressed
  std::unordered_map<uint32_t, Mapped> contexts_;
};

}  // namespace v3d::daemon
