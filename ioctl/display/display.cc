/// @file What the display is set to and what it owns: framebuffers and blobs with their owners.
#include "ioctl/display/display.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ioctl/display/console.h"

namespace v3d::ioctl::kms {
namespace {

ScanoutPlane describe(const ObjectState& plane, uint32_t id) {
  const Framebuffer& fb = *plane.fb;
  ScanoutPlane shown = {.plane_id = id,
                        .parts = {},
                        .fourcc = fb.format->fourcc,
                        .modifier = fb.modifier,
                        .width = fb.width,
                        .height = fb.height,
                        .src_x = plane.get_u32(kSrcX),
                        .src_y = plane.get_u32(kSrcY),
                        .src_w = plane.get_u32(kSrcW),
                        .src_h = plane.get_u32(kSrcH),
                        .x = plane.get_signed(kCrtcX),
                        .y = plane.get_signed(kCrtcY),
                        .w = plane.get_u32(kCrtcW),
                        .h = plane.get_u32(kCrtcH),
                        .alpha = static_cast<uint16_t>(plane.get(kAlpha)),
                        .blend = static_cast<Blend>(plane.get(kBlend)),
                        .rotation = plane.get_u32(kRotation),
                        .color_encoding = plane.get_u32(kColorEncoding),
                        .color_range = plane.get_u32(kColorRange)};
  for (uint32_t i = 0; i < fb.format->parts; ++i)
    shown.parts.push_back({fb.parts[i].bo->buffer(), fb.parts[i].offset, fb.parts[i].pitch});
  return shown;
}

constexpr std::string_view kConnected = "connected";

/// Where it is in the stack (drm_atomic_normalize_zpos): of the same zpos the later plane is above. That of a
/// primary plane does not move.
uint64_t zpos(const ObjectState& plane, const Pipe& pipe, uint32_t id) {
  return plane.get(id == pipe.primary ? kZpos : kMovableZpos);
}

bool takes(const Format& format, const chip::DisplayUnit& unit, const Abi& abi) {
  switch (format.takers) {
    case Takers::kAll:
      return true;
    case Takers::kTenBits:
      return unit.ten_bits;
    case Takers::kLaterLinux:
      return abi.planes_take_small_rgb;
    case Takers::kNewestLinux:
      return abi.planes_take_yuv444;
  }
  return false;
}

std::vector<const Format*> formats_of(const chip::DisplayUnit& unit, const Abi& abi) {
  std::vector<const Format*> taken;
  for (const Format& format : kms::formats())
    if (takes(format, unit, abi)) taken.push_back(&format);
  return taken;
}

std::array<uint64_t, 2 * kNumPipes> new_fence_contexts() {
  std::array<uint64_t, 2 * kNumPipes> contexts;
  for (uint64_t& context : contexts) context = new_fence_context();
  return contexts;
}

}  // namespace

Display::Display(const DisplayOptions& options, std::function<void()> wake)
    : options_(options),
      formats_(formats_of(*options.unit, *options.abi)),
      formats_blob_(make_formats_blob(formats_)),
      wake_(std::move(wake)),
      first_sequence_(ticks_at(options_.now_ns(), options_.vblank_hz)),
      fence_contexts_(new_fence_contexts()),
      writer_([this](uint64_t number) { end_write(number); }) {
  for (uint32_t i = 0; i < kNumMonitors; ++i)
    if (wire::kConnectors[i].status == kConnected) monitors_ |= 1u << i;
  state_ = shown_ = at_rest();
  for (Gamma& gamma : gamma_)
    for (uint32_t i = 0; i < gamma.size(); ++i) gamma[i] = static_cast<uint16_t>(i % kGammaSize * 0x101);
}

Display::~Display() {
  for (const auto& pending : pending_)
    for (const FencePtr& fence : pending->fences) fence->unwatch(pending->watcher.get());
}

bool Display::has(uint32_t object) const {
  const uint32_t pipe = find_pipe(object);
  if (pipe == kNumPipes) return true;
  const Output kind = kPipes[pipe].output;
  const auto before = std::count_if(kPipes, kPipes + pipe, [&](const Pipe& p) { return p.output == kind; });
  switch (kind) {
    case Output::kMonitor:
      return before < unit().sockets;
    case Output::kMemory:
      return before < unit().writers;
    case Output::kNothing:
      return before < unit().idle_valves;
  }
  return false;
}

bool Display::has_property(uint32_t property) const {
  if (property == kHdrMetadata) return unit().hdr;
  const bool twelve_bits = unit().hdr || !options_.abi->max_bpc_by_socket;
  if (property == kMaxBpc || property == kMaxBpcOf8Bits) return (property == kMaxBpc) == twelve_bits;
  if (property == kZpos || property == kMovableZpos) return options_.abi->planes_have_zpos;
  return find_property(property) != nullptr;
}

const Format* Display::find_format(uint32_t fourcc) const {
  const auto found = std::find_if(formats_.begin(), formats_.end(),
                                  [&](const Format* format) { return format->fourcc == fourcc; });
  return found == formats_.end() ? nullptr : *found;
}

std::span<const uint8_t> Display::find_fixed_blob(uint32_t id) const {
  return id == kFormatsBlobId ? formats_blob_ : find_common_blob(id);
}

Scanout Display::scanout() const {
  const std::lock_guard lock(mutex_);
  return describe_shown();
}

void Display::add_viewer() {
  News news;
  const std::lock_guard lock(mutex_);
  if (viewers_++ == 0) keep_picture(&news);
}

void Display::remove_viewer() {
  Scanout dropped;
  const std::lock_guard lock(mutex_);
  if (--viewers_ == 0) std::swap(dropped, last_picture_);
}

uint64_t Display::begin_look() {
  const std::lock_guard lock(mutex_);
  return *looks_.insert(next_look_++).first;
}

void Display::end_look(uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    looks_.erase(number);
  }
  wake_();
}

Scanout Display::last_picture() const {
  const std::lock_guard lock(mutex_);
  return last_picture_;
}

void Display::keep_picture(News* news) {
  if (viewers_ == 0) return;
  Scanout shown = describe_shown();
  if (shown.planes.empty()) return;
  std::swap(shown, last_picture_);
  news->dropped.push_back(std::move(shown));
}

/// @param hidden  a framebuffer that is not to be seen
Scanout Display::describe_pipe(const DisplayState& state, uint32_t pipe, const FramebufferPtr& hidden) {
  Scanout shown;
  shown.active = state.active(pipe);
  if (!shown.active) return shown;
  const drm::ModeInfo mode = state.mode(pipe);
  shown.width = mode.hdisplay;
  shown.height = mode.vdisplay;
  std::vector<uint32_t> order;
  for (const Object& object : kms::objects()) {
    const ObjectState& plane = state.of(object.id);
    if (object.type != drm::kObjectPlane || plane.get(kCrtc) != kPipes[pipe].crtc) continue;
    if (plane.get(kCrtcW) && plane.get(kCrtcH) && plane.fb != hidden) order.push_back(object.id);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(zpos(state.of(a), kPipes[pipe], a), a) <
           std::pair(zpos(state.of(b), kPipes[pipe], b), b);
  });
  for (const uint32_t id : order) shown.planes.push_back(describe(state.of(id), id));
  return shown;
}

Scanout Display::describe_shown() const {
  uint32_t pipe = 0;
  while (pipe + 1 < kNumMonitors && !shown_.active(pipe)) ++pipe;
  Scanout shown = describe_pipe(shown_, pipe, console_used_ ? nullptr : console_);
  shown.frame = frame_;
  shown.time_ns = frame_ns_;
  if (shown.active) shown.refresh_hz = options_.vblank_hz;
  return shown;
}

uint64_t Display::frame() const {
  const std::lock_guard lock(mutex_);
  return frame_;
}

int Display::wait_for_frame(uint64_t seen, const std::shared_ptr<Waiter>& waiter, int64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  return sleep(lock, waiter, deadline_ns, [&] { return frame_ != seen; });
}

void Display::watch_frames(std::shared_ptr<Watcher> watcher) {
  const std::lock_guard lock(mutex_);
  frame_watchers_.push_back(std::move(watcher));
}

void Display::unwatch_frames(const Watcher* watcher) {
  const std::lock_guard lock(mutex_);
  std::erase_if(frame_watchers_, [&](const auto& w) { return w.get() == watcher; });
}

void Display::set_console(std::shared_ptr<Framebuffer> console) {
  console->id = kConsoleFbId;
  console_mode_ = make_mode_blob(modes()[0]);
  const std::lock_guard lock(mutex_);
  fbs_[console->id] = console;
  console_ = std::move(console);
  state_ = shown_ = at_rest();
}

DisplayState Display::at_rest() const {
  DisplayState state;
  state.plug(monitors_);
  for (uint32_t i = 0; i < kNumMonitors; ++i)
    if (console_ && (monitors_ >> i & 1)) show_console(state, i, console_, console_mode_);
  return state;
}

uint32_t Display::monitors() const {
  const std::lock_guard lock(mutex_);
  return monitors_;
}

void Display::plug(uint32_t connector, bool monitor, bool has_master) {
  News news;
  {
    const std::lock_guard lock(mutex_);
    const uint32_t bit = 1u << connector;
    if (((monitors_ & bit) != 0) == monitor) return;
    monitors_ ^= bit;
    // Without a master the console goes to where a monitor is (drm_fb_helper_hotplug_event).
    if (!has_master) {
      come_to_rest(&news);
    } else {
      state_.plug(monitors_);
      shown_.plug(monitors_);
      for (const auto& pending : pending_) pending->next.plug(monitors_);
    }
  }
  news.tell(*this);
}

bool Display::sees_console() const {
  if (!console_used_) return false;
  for (uint32_t i = 0; i < kNumMonitors; ++i)
    if (shown_.active(i) && shown_.primary(i).fb == console_) return true;
  return false;
}

void Display::use_console() {
  News news;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(console_used_, true) || !sees_console()) return;
    frame_shown(options_.now_ns(), &news);
    keep_picture(&news);
  }
  news.tell(*this);
}

bool Display::refresh_console() {
  News news;
  {
    const std::lock_guard lock(mutex_);
    if (!sees_console()) return false;
    frame_shown(options_.now_ns(), &news);
  }
  news.tell(*this);
  return true;
}

template <typename T>
void Display::prune(std::unordered_map<uint32_t, std::weak_ptr<T>>* ids, size_t* prune_at) {
  if (ids->size() < *prune_at) return;
  std::erase_if(*ids, [](const auto& entry) { return entry.second.expired(); });
  *prune_at = std::max<size_t>(64, 2 * ids->size());
}

uint32_t Display::new_id() {
  do {
    next_id_ = std::max<uint32_t>(next_id_ + 1, kFirstDynamicId);
  } while (fbs_.contains(next_id_) || blobs_.contains(next_id_));
  return next_id_;
}

uint32_t Display::add_fb(const File& owner, std::shared_ptr<Framebuffer> fb) {
  const std::lock_guard lock(mutex_);
  prune(&fbs_, &prune_fbs_at_);
  const uint32_t id = fb->id = new_id();
  auto& owned = owned_fbs_[&owner];
  fbs_[id] = fb;
  owned[id] = std::move(fb);
  return id;
}

FramebufferPtr Display::find_fb(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto it = fbs_.find(id);
  return it == fbs_.end() ? nullptr : it->second.lock();
}

void Display::forget_fb(const Framebuffer& fb, News* news) {
  state_.forget(fb);
  for (const auto& pending : pending_) pending->next.forget(fb);
  if (shown_.forget(fb) & kMonitorPipes) frame_shown(options_.now_ns(), news);
}

int Display::remove_fb(const File& owner, uint32_t id, bool hide) {
  News news;
  std::shared_ptr<Framebuffer> removed;  // dropped after the lock
  {
    const std::lock_guard lock(mutex_);
    const auto owned = owned_fbs_.find(&owner);
    if (owned == owned_fbs_.end()) return ENOENT;
    const auto fb = owned->second.find(id);
    if (fb == owned->second.end()) return ENOENT;
    removed = std::move(fb->second);
    owned->second.erase(fb);
    if (owned->second.empty()) owned_fbs_.erase(owned);
    removed->charge.release();  // planes alone can hold it, of which there are few
    if (hide) forget_fb(*removed, &news);
  }
  news.tell(*this);
  return 0;
}

std::vector<uint32_t> Display::fbs_of(const File& owner) const {
  std::vector<uint32_t> ids;
  const std::lock_guard lock(mutex_);
  if (const auto owned = owned_fbs_.find(&owner); owned != owned_fbs_.end())
    for (const auto& [id, fb] : owned->second) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

uint32_t Display::add_blob(const File* owner, std::shared_ptr<Blob> blob) {
  const std::lock_guard lock(mutex_);
  prune(&blobs_, &prune_blobs_at_);
  const uint32_t id = blob->id = new_id();
  blobs_[id] = blob;
  if (owner) owned_blobs_[owner][id] = std::move(blob);
  return id;
}

BlobPtr Display::find_blob(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto it = blobs_.find(id);
  return it == blobs_.end() ? nullptr : it->second.lock();
}

int Display::remove_blob(const File& owner, uint32_t id) {
  std::shared_ptr<Blob> removed;
  const std::lock_guard lock(mutex_);
  const auto it = blobs_.find(id);
  if (it == blobs_.end() || it->second.expired()) return find_fixed_blob(id).empty() ? ENOENT : EPERM;
  const auto owned = owned_blobs_.find(&owner);
  if (owned == owned_blobs_.end()) return EPERM;
  const auto blob = owned->second.find(id);
  if (blob == owned->second.end()) return EPERM;
  removed = std::move(blob->second);
  removed->charge.release();
  removed->charged_bytes.release();
  owned->second.erase(blob);
  if (owned->second.empty()) owned_blobs_.erase(owned);
  return 0;
}

std::vector<uint32_t> Display::dynamic_ids() const {
  std::vector<uint32_t> ids;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, fb] : fbs_)
    if (!fb.expired()) ids.push_back(id);
  for (const auto& [id, blob] : blobs_)
    if (!blob.expired()) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

BlobPtr Display::make_mode_blob(const drm::ModeInfo& mode) {
  auto blob = std::make_shared<Blob>();
  blob->bytes.resize(sizeof mode);
  std::memcpy(blob->bytes.data(), &mode, sizeof mode);
  add_blob(nullptr, blob);
  return blob;
}

void Display::close_file(const File& file, const EventQueue& events, bool was_open) {
  News news;
  std::unordered_map<uint32_t, std::shared_ptr<Framebuffer>> fbs;  // dropped after the lock
  std::unordered_map<uint32_t, std::shared_ptr<Blob>> blobs;
  {
    const std::lock_guard lock(mutex_);
    if (const auto owned = owned_fbs_.find(&file); owned != owned_fbs_.end()) {
      fbs = std::move(owned->second);
      owned_fbs_.erase(owned);
    }
    for (const auto& [id, fb] : fbs) {
      fb->charge.release();
      forget_fb(*fb, &news);
    }
    if (const auto owned = owned_blobs_.find(&file); owned != owned_blobs_.end()) {
      blobs = std::move(owned->second);
      owned_blobs_.erase(owned);
    }
    for (const auto& [id, blob] : blobs) {
      blob->charge.release();
      blob->charged_bytes.release();
    }
    std::erase_if(vblank_waits_, [&](const VblankWait& wait) { return wait.event.is_of(events); });
    if (was_open && --open_files_ == 0) come_to_rest(&news);
  }
  news.tell(*this);
}

void Display::open_file() {
  const std::lock_guard lock(mutex_);
  ++open_files_;
}

DisplayState Display::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

Display::Gamma Display::gamma(uint32_t pipe) const {
  const std::lock_guard lock(mutex_);
  return gamma_[pipe];
}

void Display::set_gamma(uint32_t pipe, const Gamma& gamma) {
  const std::lock_guard lock(mutex_);
  gamma_[pipe] = gamma;
}

}  // namespace v3d::ioctl::kms
