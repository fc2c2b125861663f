#include "tools/cli/captures/clif.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/chip/profile.h"
#include "gpu/cle/packet.h"
#include "gpu/cle/packet_table.h"
#include "gpu/mmu/address_space.h"

namespace v3d::tools {
namespace {

using cle::FieldType;
using cle::Opcode;

/// Packets whose names are shorter there than in the table ("shortname" in v3d_packet.xml).
constexpr std::pair<Opcode, const char*> kShortNames[] = {
    {Opcode::kIncrementSemaphore, "INCR_SEMAPHORE"},
    {Opcode::kWaitOnSemaphore, "WAIT_SEMAPHORE"},
    {Opcode::kWaitForPreviousFrame, "WAIT_PREV_FRAME"},
    {Opcode::kEnableZOnlyRendering, "ENABLE_Z_ONLY"},
    {Opcode::kDisableZOnlyRendering, "DISABLE_Z_ONLY"},
    {Opcode::kEndOfZOnlyRenderingInFrame, "END_Z_ONLY"},
    {Opcode::kEndOfRendering, "END_RENDER"},
    {Opcode::kWaitForTransformFeedback, "WAIT_TRANSFORM_FEEDBACK"},
    {Opcode::kBranchToAutoChainedSubList, "BRANCH_SUB_AUTOCHAIN"},
    {Opcode::kBranchToSubList, "BRANCH_SUB"},
    {Opcode::kReturnFromSubList, "RETURN"},
    {Opcode::kFlushVcdCache, "CLEAR_VCD_CACHE"},
    {Opcode::kStartAddressOfGenericTileList, "GENERIC_TILE_LIST"},
    {Opcode::kBranchToImplicitTileList, "BRANCH_IMPLICIT_TILE"},
    {Opcode::kBranchToExplicitSupertile, "BRANCH_EXPLICIT_SUPERTILE"},
    {Opcode::kSupertileCoordinates, "SUPERTILE_COORDS"},
    {Opcode::kClearTileBuffers, "CLEAR"},  // and of 7.1 CLEAR_RT
    {Opcode::kEndOfLoads, "END_LOADS"},
    {Opcode::kEndOfTileMarker, "END_TILE"},
    {Opcode::kStoreTileBufferGeneral, "STORE"},
    {Opcode::kLoadTileBufferGeneral, "LOAD"},
    {Opcode::kTransformFeedbackFlushAndCount, "TF_DRAW_FLUSH_AND_COUNT"},
    {Opcode::kGlShaderState, "GL_SHADER"},
    {Opcode::kGlShaderStateIncludingTs, "GL_T_SHADER"},
    {Opcode::kGlShaderStateIncludingGs, "GL_G_SHADER"},
    {Opcode::kGlShaderStateIncludingTsGs, "GL_TG_SHADER"},
    {Opcode::kPrimitiveCountsFeedback, "PRIM_COUNTS_FEEDBACK"},
    {Opcode::kBlendConstantColor, "BLEND_CCOLOR"},
    {Opcode::kColorWriteMasks, "COLOR_WMASKS"},
    {Opcode::kOcclusionQueryCounter, "OCCLUSION_QUERY_COUNTER_ENABLE"},
    {Opcode::kZeroAllFlatShadeFlags, "ZERO_ALL_FLATSHADE_FLAGS"},
    {Opcode::kFlatShadeFlags, "FLATSHADE_FLAGS"},
    {Opcode::kZeroAllNonPerspectiveFlags, "ZERO_ALL_NOPERSPECTIVE_FLAGS"},
    {Opcode::kNonPerspectiveFlags, "NOPERSPECTIVE_FLAGS"},
    {Opcode::kClipWindow, "CLIP"},
    {Opcode::kClipperZMinMaxClippingPlanes, "CLIPZ"},
    {Opcode::kClipperXyScaling, "CLIPPER_XY"},
    {Opcode::kClipperZScaleAndOffset, "CLIPPER_Z"},
    {Opcode::kClipperZScaleAndOffsetNoGuardband, "CLIPPER_Z_NO_GUARDBAND"},
    {Opcode::kMulticoreRenderingTileListSetBase, "MULTICORE_RENDERING_TILE_LIST_BASE"},
    {Opcode::kTileCoordinates, "TILE_COORDS"},
    {Opcode::kTileCoordinatesImplicit, "IMPLICIT_TILE_COORDS"},
};

std::string clif_name(const cle::PacketInfo& info) {
  if (info.opcode == Opcode::kClearRenderTargets && !(info.generations & cle::k42)) return "CLEAR_RT";
  for (const auto& [opcode, name] : kShortNames)
    if (info.opcode == opcode) return name;
  std::string name;
  for (const char* c = info.name; *c != '\0'; ++c)
    if (*c != '(' && *c != ')')
      name += *c == ' ' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  return name;
}

const cle::PacketInfo* find_packet(std::string_view name, chip::Generation generation) {
  static const auto* const kNames = [] {
    auto* names = new std::multimap<std::string, const cle::PacketInfo*, std::less<>>;
    for (const cle::PacketInfo& info : cle::packet_table::kPackets) names->emplace(clif_name(info), &info);
    return names;
  }();
  const auto [begin, end] = kNames->equal_range(name);
  for (auto at = begin; at != end; ++at)
    if (at->second->generations & cle::set_of(generation)) return at->second;
  return nullptr;
}

const cle::RecordInfo& find_record(std::string_view name, chip::Generation generation) {
  const cle::RecordInfo* found = cle::packet_table::kRecords;
  for (const cle::RecordInfo& info : cle::packet_table::kRecords)
    if (name == info.name && (info.generations & cle::set_of(generation))) found = &info;
  return *found;
}

/// What is wrong with a line.
struct Wrong {
  std::string text;
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Up to what ends it, which goes with it; or all of it.
std::string_view take_until(std::string_view* text, std::string_view end) {
  const size_t at = text->find(end);
  const std::string_view taken = text->substr(0, at);
  text->remove_prefix(at == text->npos ? text->size() : at + end.size());
  return taken;
}

uint32_t hex(std::string_view text) {
  uint32_t value;
  if (!absl::SimpleHexAtoi(std::string(text), &value))
    throw Wrong{absl::StrCat("\"", std::string(text), "\" is no address")};
  return value;
}

/// Mesa names buffer objects by their addresses: "CL_0x13000".
uint32_t address_of_buffer(std::string_view name) {
  const size_t at = name.rfind("_0x");
  if (at == name.npos)
    throw Wrong{absl::StrCat("the name of the buffer ", std::string(name), " has no address")};
  return hex(name.substr(at + 1));
}

/// "[CL_0x13000+0x00000060] /* 0x00013060 */", "[null]", or that of memory that is no buffer's.
uint32_t address_of(std::string_view text) {
  constexpr std::string_view kUnknown = "/* XXX: BO unknown */";
  if (text.starts_with("[null]")) return 0;
  if (text.starts_with(kUnknown)) return hex(trimmed(text.substr(kUnknown.size())));
  if (!text.starts_with("[")) throw Wrong{absl::StrCat("\"", std::string(text), "\" is no address")};
  text.remove_prefix(1);
  std::string_view place = take_until(&text, "]");
  const std::string_view name = take_until(&place, "+");
  return address_of_buffer(name) + hex(place);
}

/// The bits that a field has for its text.
uint64_t bits_of(const cle::Field& field, std::string_view text) {
  if (field.type == FieldType::kAddress) return address_of(text) >> (32 - field.width);
  const std::string number(trimmed(text.substr(0, text.find("/*"))));
  if (number.find_first_of(".n") != std::string::npos) {  // also of inf and nan
    double value;
    if (!absl::SimpleAtod(number, &value)) throw Wrong{absl::StrCat("\"", number, "\" is no number")};
    const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    switch (field.type) {
      case FieldType::kFloat:
        return bits;
      case FieldType::kBf16:
        return bits >> 16;
      case FieldType::kFixed8:
      case FieldType::kSigned4:
        if (std::abs(value) > 1e6) throw Wrong{absl::StrCat(number, " is beyond the field ", field.name)};
        return static_cast<uint64_t>(std::llround(value * (field.type == FieldType::kFixed8 ? 256 : 16)));
      default:
        throw Wrong{absl::StrCat("the field ", field.name, " is no float")};
    }
  }
  int64_t value;
  if (!absl::SimpleAtoi(number, &value)) throw Wrong{absl::StrCat("\"", number, "\" is no number")};
  if (field.type == FieldType::kMinusOne) --value;
  return static_cast<uint64_t>(value);
}

void put_bits(uint8_t* body, const cle::Field& field, uint64_t bits) {
  for (unsigned n = 0; n < field.width; ++n) {
    const unsigned at = field.start + n;
    body[at / 8] = static_cast<uint8_t>((body[at / 8] & ~(1u << at % 8)) | (bits >> n & 1) << at % 8);
  }
}

class Parser {
 public:
  Parser(std::string_view text, chip::Generation generation) : text_(text), generation_(generation) {}

  absl::StatusOr<Clif> parse() {
    try {
      while (next()) take_line();
      if (begun_) throw Wrong{"a dump ends before its job"};
    } catch (const Wrong& wrong) {
      return absl::InvalidArgumentError(absl::StrFormat("line %d: %s", line_number_, wrong.text));
    }
    return Clif{generation_, std::move(dumps_)};
  }
  int line_number() const { return line_number_; }

 private:
  enum class Format : uint8_t { kList, kBinary, kBlank };

  bool next() {
    if (text_.empty()) return false;
    line_ = trimmed(take_until(&text_, "\n"));
    ++line_number_;
    return true;
  }
  /// A line that belongs to the one before: it is there.
  std::string_view need() {
    if (!next()) throw Wrong{"the text ends here"};
    return line_;
  }

  void take_line() {
    if (line_.starts_with("@createbuf_aligned")) {
      begin();
    } else if (!begun_ || line_.empty() || line_.starts_with("@wait_")) {
    } else if (line_.starts_with("@buffer ")) {
      dump_.buffers.push_back({.address = address_of_buffer(line_.substr(8))});
      format_ = Format::kBlank;
    } else if (line_.starts_with("@format ")) {
      take_format(line_.substr(8));
    } else if (line_.starts_with("@add_bin")) {
      take_bin();
    } else if (line_.starts_with("@add_render")) {
      take_render();
    } else if (format_ == Format::kBinary) {
      take_words();
    } else if (format_ == Format::kList) {
      take_packet();
    } else {
      throw Wrong{absl::StrCat("\"", std::string(line_), "\" is no part of a dump")};
    }
  }

  void begin() {
    if (!begun_) dump_ = {};
    begun_ = true;
  }

  ClifBuffer& buffer() {
    if (dump_.buffers.empty()) throw Wrong{"no buffer has begun"};
    return dump_.buffers.back();
  }

  void append(const void* data, size_t bytes) {
    ClifBuffer& to = buffer();
    grow(bytes);
    if (to.parts.empty() || to.parts.back().first + to.parts.back().second.size() != to.size - bytes)
      to.parts.emplace_back(to.size - bytes, "");
    to.parts.back().second.append(static_cast<const char*>(data), bytes);
  }
  void grow(uint64_t bytes) {
    ClifBuffer& to = buffer();
    to.size += bytes;
    if (to.address + to.size > mmu::kSpaceSize) throw Wrong{"a buffer ends beyond 4 GiB"};
  }

  /// Places in comments are those of what follows.
  void check_place(std::string_view comment) {
    const size_t plus = comment.find("+0x");
    if (plus == comment.npos) return;
    comment.remove_prefix(plus + 1);
    const uint32_t place = hex(comment.substr(0, comment.find_first_of(".] ")));
    if (place != buffer().size)
      throw Wrong{absl::StrFormat("what stands before comes to 0x%08x", buffer().size)};
  }

  void take_format(std::string_view what) {
    const std::string_view name = take_until(&what, " ");
    if (name == "ctrllist") {
      check_place(what);
      format_ = Format::kList;
    } else if (name == "binary") {
      check_place(what);
      format_ = Format::kBinary;
    } else if (name == "blank") {
      uint32_t bytes;
      const std::string count(take_until(&what, " "));
      if (!absl::SimpleAtoi(count, &bytes))
        throw Wrong{absl::StrCat("\"", count, "\" is no number of bytes")};
      check_place(what);
      grow(bytes);
      format_ = Format::kBinary;
    } else if (name == "shadrec_gl_main") {
      take_record("GL Shader State Record");
    } else if (name == "shadrec_gl_attr") {
      take_record("GL Shader State Attribute Record");
    } else if (name == "shadrec_gl_geom") {
      take_record("Geometry Shader State Record");
      constexpr char kPad[20] = {};
      append(kPad, sizeof kPad);
    } else {
      throw Wrong{absl::StrCat("there is no format ", std::string(name))};
    }
  }

  void take_words() {
    for (std::string_view rest = line_; !(rest = trimmed(rest)).empty();) {
      const std::string_view text = take_until(&rest, " ");
      const uint32_t word = hex(text);
      append(&word, text.size() == 4 ? 1 : 4);
    }
  }

  static bool is_unnamed(std::string_view field) {
    return field == "sub-id" || field == "unused" || field == "Pad";
  }

  /// Lines of fields follow, as many as there are in the packet or record.
  template <typename Info>
  void take_fields(const Info& info, uint8_t* body) {
    size_t count = 0;
    for (const cle::Field& field : info.fields) count += field.name != nullptr && !is_unnamed(field.name);
    for (; count > 0; --count) {
      std::string_view line = need();
      if (!line.starts_with("/*")) throw Wrong{absl::StrCat("a field of ", info.name, " is expected")};
      line.remove_prefix(2);
      std::string_view name = trimmed(take_until(&line, "*/"));
      if (name.ends_with(":")) name.remove_suffix(1);
      const auto* const found =
          std::find_if(std::begin(info.fields), std::end(info.fields),
                       [&](const cle::Field& field) { return field.name != nullptr && name == field.name; });
      if (found == std::end(info.fields))
        throw Wrong{absl::StrCat(info.name, " has no field ", std::string(name), " in V3D ",
                                 chip::version_text(generation_))};
      put_bits(body, *found, bits_of(*found, trimmed(line)));
    }
  }

  void take_record(const char* name) {
    const cle::RecordInfo& info = find_record(name, generation_);
    std::array<uint8_t, 64> body{};
    take_fields(info, body.data());
    append(body.data(), info.length);
    format_ = Format::kBinary;
  }

  void take_packet() {
    const cle::PacketInfo* const info = find_packet(line_, generation_);
    if (!info)
      throw Wrong{
          absl::StrCat("V3D ", chip::version_text(generation_), " has no packet ", std::string(line_))};
    std::array<uint8_t, 64> bytes{};
    bytes[0] = static_cast<uint8_t>(info->opcode);
    if (info->sub_id >= 0) put_bits(bytes.data() + 1, info->fields[0], static_cast<uint8_t>(info->sub_id));
    take_fields(*info, bytes.data() + 1);
    append(bytes.data(), info->length);
    if (info->opcode != Opcode::kTransformFeedbackSpecs) return;
    for (uint32_t specs = bytes[1] & 31; specs > 0; --specs) {
      take_record("Transform Feedback Output Data Spec");
    }
    format_ = Format::kList;
  }

  void take_bin() {
    dump_.job.bcl_start = address_of(need());
    dump_.job.bcl_end = address_of(need());
    dump_.job.qma = address_of(need());
    if (const std::string size(need()); !absl::SimpleAtoi(size, &dump_.job.qms))
      throw Wrong{absl::StrCat("\"", size, "\" is no number of bytes")};
    dump_.job.qts = address_of(need());
  }

  void take_render() {
    dump_.job.rcl_start = address_of(need());
    dump_.job.rcl_end = address_of(need());
    need();
    dumps_.push_back(std::exchange(dump_, {}));
    begun_ = false;
  }

  std::string_view text_, line_;
  const chip::Generation generation_;
  int line_number_ = 0;
  bool begun_ = false;
  Format format_ = Format::kBlank;
  ClifDump dump_;
  std::vector<ClifDump> dumps_;
};

uint64_t whole_pages(uint64_t bytes) {
  return (bytes + mmu::kPageSize - 1) / mmu::kPageSize * mmu::kPageSize;
}

/// Has the space hold the buffers of a dump, and nothing else.
absl::Status set_memory(const ClifDump& dump, mmu::AddressSpace& space) {
  for (const mmu::AddressSpace::Range& range : space.mapped_ranges())
    if (!space.unmap(range.address, range.size))
      return absl::ResourceExhaustedError("the host has no more mappings");
  for (const ClifBuffer& buffer : dump.buffers) {
    if (buffer.size == 0) continue;
    if (absl::Status mapped = space.map_zeros(buffer.address, whole_pages(buffer.size)); !mapped.ok())
      return mapped;
    for (const auto& [place, bytes] : buffer.parts)
      space.memory().write(static_cast<GpuAddr>(buffer.address + place), bytes.data(), bytes.size());
  }
  return absl::OkStatus();
}

const char* profile_name(chip::Generation generation) {
  return generation == chip::Generation::k42 ? "rpi4" : "rpi5";
}

absl::Status write_capture(const Clif& clif, const std::string& path) {
  auto space = mmu::AddressSpace::create();
  if (!space.ok()) return space.status();
  auto writer = daemon::CaptureWriter::create(path, profile_name(clif.generation));
  if (!writer.ok()) return writer.status();
  uint32_t submission = 0;
  for (const ClifDump& dump : clif.dumps) {
    if (absl::Status set = set_memory(dump, **space); !set.ok()) return set;
    const bool bins = dump.job.bcl_start != dump.job.bcl_end;
    if (bins) ++submission;
    for (const bool render : {false, true})
      if (render || bins)
        (*writer)->begin(**space, daemon::CapturedJob::of(dump.job, render, bins ? submission : 0));
  }
  return absl::OkStatus();
}

constexpr char kBegin[] = "@createbuf_aligned ";
/// So large may a text be.
constexpr size_t kMostText = size_t{1} << 30;

/// The text of a file that is no capture and has dumps.
std::optional<std::string> read_clif(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return {};
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (text.starts_with(std::string_view(daemon::kCaptureMagic, 6))) return {};
  for (std::string more(1 << 20, '\0'); text.size() < kMostText;) {
    const size_t got = std::fread(more.data(), 1, more.size(), file.get());
    if (got == 0) break;
    text.append(more, 0, got);
  }
  if (!is_clif(text)) return {};
  return text;
}

}  // namespace

bool is_clif(std::string_view text) {
  const size_t at = text.find(kBegin);
  return at != text.npos && (at == 0 || text[at - 1] == '\n');
}

absl::StatusOr<Clif> parse_clif(std::string_view text) {
  Parser newer(text, chip::Generation::k71), older(text, chip::Generation::k42);
  auto clif = newer.parse();
  if (clif.ok()) return clif;
  auto of_older = older.parse();
  return of_older.ok() || older.line_number() > newer.line_number() ? of_older : clif;
}

absl::StatusOr<std::string> capture_path(const std::string& path) {
  const auto text = read_clif(path);
  if (!text) return path;
  const auto clif = parse_clif(*text);
  if (!clif.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", clif.status().message()));
  const int fd = memfd_create("v3demu-clif", MFD_CLOEXEC);  // open from now on
  if (fd < 0) return absl::UnavailableError(absl::StrCat("no file for a capture: ", strerror(errno)));
  const std::string made = absl::StrCat("/proc/self/fd/", fd);
  if (absl::Status written = write_capture(*clif, made); !written.ok()) return written;
  return made;
}

absl::StatusOr<std::unique_ptr<daemon::CaptureReader>> open_capture(const std::string& path,
                                                                    qpu::Compiler* compiler) {
  const auto capture = capture_path(path);
  if (!capture.ok()) return capture.status();
  return daemon::CaptureReader::open(*capture, compiler);
}

}  // namespace v3d::tools
