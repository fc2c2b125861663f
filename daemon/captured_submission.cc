#include "daemon/captured_submission.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ioctl/abi/vc4.h"
#include "ioctl/vc4/binning.h"
#include "ioctl/vc4/program.h"
#include "ioctl/vc4/surfaces.h"

namespace v3d::daemon {
namespace {

namespace vc4 = ioctl::vc4;
namespace drm = ioctl::drm::vc4;

struct SubmittedBo {
  uint32_t address, pages, is_shader;
};

constexpr uint64_t whole_words(uint64_t bytes) { return (bytes + 3) & ~uint64_t{3}; }

absl::Status refuse(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("a submission that cannot be: ", why));
}

/// The parts of the words.
struct Submission {
  drm::SubmitCl args;
  std::vector<SubmittedBo> bos;
  vc4::BinningSource source;
};

absl::StatusOr<Submission> parse(std::span<const uint32_t> words, uint32_t bytes) {
  Submission s;
  std::span<const uint8_t> rest(reinterpret_cast<const uint8_t*>(words.data()), bytes);
  if (rest.size() < sizeof words[0] + sizeof s.args) return refuse("its record is too short");
  rest = rest.subspan(sizeof words[0]);
  std::memcpy(&s.args, rest.data(), sizeof s.args);
  rest = rest.subspan(sizeof s.args);
  const uint64_t bos = uint64_t{s.args.bo_handle_count} * sizeof(SubmittedBo);
  const uint32_t sizes[] = {s.args.bin_cl_size, s.args.shader_rec_size, s.args.uniforms_size};
  if (rest.size() != bos + whole_words(sizes[0]) + whole_words(sizes[1]) + whole_words(sizes[2]))
    return refuse("its record is not as long as its parts");
  s.bos.resize(s.args.bo_handle_count);
  if (bos) std::memcpy(s.bos.data(), rest.data(), bos);
  rest = rest.subspan(bos);
  std::span<const uint8_t>* const parts[] = {&s.source.list, &s.source.records, &s.source.uniforms};
  for (size_t i = 0; i < std::size(sizes); ++i) {
    *parts[i] = rest.first(sizes[i]);
    rest = rest.subspan(whole_words(sizes[i]));
  }
  s.source.num_records = s.args.shader_rec_count;
  return s;
}

/// The BOs as the checks see them, with what is found out about their programs.
class Bos {
 public:
  absl::Status take(const std::vector<SubmittedBo>& bos, const mmu::AddressSpace& space,
                    const FoundPage& found) {
    if (absl::Status status = check_places(bos, space); !status.ok()) return status;
    uint64_t shader_bytes = 0;
    for (const SubmittedBo& bo : bos) {
      const uint64_t size = uint64_t{bo.pages} * mmu::kPageSize;
      bos_.push_back({bo.address, size, nullptr});
      if (!bo.is_shader) continue;
      if ((shader_bytes += size) > kMostShaderBytes)
        return refuse("its shaders are larger than any that is written");
      auto program = analyse(bo, found);
      if (!program.ok())
        return refuse(absl::StrFormat("the shader at %#x: %s", bo.address, program.status().message()));
      programs_.push_back(*std::move(program));
      bos_.back().program = &programs_.back();
    }
    return absl::OkStatus();
  }
  vc4::JobBos get() const { return bos_; }

 private:
  /// All that is used later is mapped, and no two overlap.
  static absl::Status check_places(std::vector<SubmittedBo> bos, const mmu::AddressSpace& space) {
    std::sort(bos.begin(), bos.end(),
              [](const SubmittedBo& a, const SubmittedBo& b) { return a.address < b.address; });
    uint64_t end = 0;
    for (const SubmittedBo& bo : bos) {
      const uint64_t size = uint64_t{bo.pages} * mmu::kPageSize;
      bool good = size != 0 && bo.address % mmu::kPageSize == 0 && bo.address >= end;
      end = bo.address + size;
      good = good && end <= kCopyAddress;
      for (uint64_t at = bo.address; good && at < end; at += mmu::kPageSize)
        good = space.is_mapped(static_cast<GpuAddr>(at));
      if (!good)
        return refuse(absl::StrFormat(
            "a buffer object of %d pages at %#x, which is not mapped or named twice", bo.pages, bo.address));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<vc4::Program> analyse(const SubmittedBo& bo, const FoundPage& found) {
    std::vector<uint64_t> words(bo.pages * (mmu::kPageSize / sizeof(uint64_t)));
    for (uint32_t page = 0; page < bo.pages; ++page) {
      const auto contents = found(bo.address + page * mmu::kPageSize);
      std::memcpy(words.data() + page * (mmu::kPageSize / sizeof(uint64_t)), contents.data(),
                  contents.size());
    }
    return vc4::analyse_program(words);
  }

  std::vector<vc4::JobBo> bos_;
  std::deque<vc4::Program> programs_;  // which stay where they are
};

}  // namespace

absl::StatusOr<SubmittedFrame> frame_of_submission(std::span<const uint32_t> words, uint32_t bytes,
                                                   const mmu::AddressSpace& space, const FoundPage& found) {
  const auto parsed = parse(words, bytes);
  if (!parsed.ok()) return parsed.status();
  const Submission& s = *parsed;
  if ((s.args.flags & ~drm::kSubmitFlags) || s.args.pad2 != 0) return refuse("flags that there are not");
  Bos bos;
  if (absl::Status status = bos.take(s.bos, space, found); !status.ok()) return status;
  vc4::Binning binning;
  if (!s.source.list.empty()) {
    const vc4::BinningLayout layout =
        vc4::layout_of(s.source.list.size(), s.source.records.size(), s.source.uniforms.size());
    if (layout.size > vc4::kMaxCopyBytes) return refuse("its list, records and uniforms are too long");
    // Which tiles are too many depends on the board's Linux, which has let them through.
    auto checked = vc4::check_binning(s.source, bos.get(), kCopyAddress, false);
    if (!checked.ok()) return refuse(std::string(checked.status().message()));
    binning = *std::move(checked);
  }
  auto surfaces = vc4::check_surfaces(s.args, bos.get(), binning.tiles_x, binning.tiles_y);
  if (!surfaces.ok()) return refuse(std::string(surfaces.status().message()));
  if (!s.source.list.empty()) vc4::place_list(binning, kCopyAddress, &surfaces->job);
  return SubmittedFrame{std::make_shared<const device::SurfaceJob>(surfaces->job), std::move(binning.bytes)};
}

}  // namespace v3d::daemon
