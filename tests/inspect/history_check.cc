/// inspect_history CAPTURE PIXELS [SEED]: at random pixels of the layers of the render jobs of a capture the
/// last values of the history, of each target, depth, stencil and sample that is stored, are what memory
/// holds when the job has run as it is; every change is that of an event; and the history has as many
/// fragments as the heat maps count. Prints how many values were compared, and what was not, by reasons:
/// status 1, unless the documents name the reason.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/inspect/memory_values.h"
#include "tests/inspect/stored_tiles.h"
#include "tools/cli/captures/compiler.h"
#include "tools/inspect/captured_position.h"
#include "tools/inspect/inspector.h"

namespace v3d::inspect {
namespace {

std::string text_of(const PixelPlace& place) {
  return absl::StrFormat("job %d layer %d pixel %d,%d sample %d", place.job, place.layer, place.x, place.y,
                         place.sample);
}

/// The stores of a history, the last one of each image.
std::vector<PixelEvent> last_stores(const History& history) {
  std::vector<PixelEvent> stores;
  for (const PixelEvent& event : history.events) {
    if (event.kind != PixelEvent::Kind::kStore) continue;
    std::erase_if(stores, [&event](const PixelEvent& earlier) {
      return earlier.transfer.address == event.transfer.address &&
             earlier.transfer.buffer == event.transfer.buffer;
    });
    stores.push_back(event);
  }
  return stores;
}

bool same(const Sample& a, const Sample& b) {
  return a.depth == b.depth && a.stencil == b.stencil && a.colors == b.colors;
}

/// @return  whether the value changes where no event changes it
bool has_gap(const History& history, const PixelPlace& place) {
  for (size_t n = 1; n < history.events.size(); ++n) {
    const PixelEvent& event = history.events[n];
    const bool covers =
        event.kind != PixelEvent::Kind::kFragment || (event.coverage >> place.sample & 1) != 0;
    const char* const what =
        event.kind != PixelEvent::Kind::kBegin && !same(history.events[n - 1].after, event.before)
            ? "differs from what the one before has left"
        : !covers && !same(event.before, event.after) ? "changes a sample that it does not cover"
                                                      : nullptr;
    if (what == nullptr) continue;
    std::printf("%s: event %zu of %zu %s\n", text_of(place).c_str(), n, history.events.size(), what);
    return true;
  }
  return false;
}

/// Heat maps of a layer.
struct Maps {
  Maps(Inspector& inspector, uint32_t job, uint32_t layer) {
    for (const Heat heat : {Heat::kFragments, Heat::kRemoved, Heat::kShaded})
      if (auto map = inspector.heat(job, ~uint64_t{0}, layer, heat); map.ok()) all.push_back(*std::move(map));
  }
  std::vector<HeatPicture> all;
};

/// @return  whether a map differs from the history
bool differs(const Maps& maps, const History& history, const PixelPlace& place) {
  uint32_t counts[3] = {};
  for (const PixelEvent& event : history.events) {
    if (event.kind != PixelEvent::Kind::kFragment) continue;
    ++counts[0];
    counts[1] += event.tests_early && event.passed_early == 0;
    counts[2] += !event.runs.empty();
  }
  bool any = maps.all.size() != 3;
  for (size_t n = 0; n < maps.all.size(); ++n) {
    const std::vector<uint32_t>& pixels = maps.all[n].pixels;
    const size_t at = size_t{place.y} * maps.all[n].config.width + place.x;
    const uint32_t mapped = at < pixels.size() ? pixels[at] : ~0u;
    if (mapped == counts[n]) continue;
    any = true;
    std::printf("%s: map %zu has %u, the history %u\n", text_of(place).c_str(), n, mapped, counts[n]);
  }
  return any;
}

class HistoryCheck {
 public:
  HistoryCheck(Inspector& inspector, CapturedPosition& plain, uint32_t seed)
      : inspector_(inspector), plain_(plain), random_(seed) {}

  /// @return  whether all is as it should be
  bool run(size_t pixels) {
    std::vector<uint32_t> jobs = stored_jobs();
    // Captures of many jobs have as many of them looked at as there are pixels, in their order.
    std::shuffle(jobs.begin(), jobs.end(), random_);
    jobs.resize(std::min(jobs.size(), pixels));
    std::sort(jobs.begin(), jobs.end());
    for (size_t n = 0; n < jobs.size(); ++n)
      check_job(jobs[n], pixels * (n + 1) / jobs.size() - pixels * n / jobs.size());
    const auto print = [](const char* what, const std::map<std::string, int>& kinds) {
      for (const auto& [kind, number] : kinds) std::printf("%6d %s%s\n", number, what, kind.c_str());
    };
    print("", counts_.kinds);
    print("excused: ", counts_.excused);
    print("FAILED: ", counts_.failed);
    std::printf("%d pixels, %d compared, %d with fragments, %d wrong\n", counts_.pixels, counts_.compared,
                counts_.drawn, counts_.wrong);
    return counts_.compared != 0 && counts_.wrong == 0 && counts_.failed.empty();
  }

 private:
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }

  void fail(const std::string& why) { ++counts_.failed[why]; }

  /// Runs a job of the plain capture, and calls see() before its memory is as it was.
  template <typename See>
  void run_plain(uint32_t job, WorkWatch* units, const See& see) {
    if (const absl::Status found = plain_.seek(job); !found.ok())
      return fail(absl::StrCat("no job: ", found.message()));
    const Ran ran = plain_.run({.units = units});
    ran.done ? see() : fail("a job that does not end: " + ran.message);
    plain_.restore();
  }

  /// The render jobs that store something.
  std::vector<uint32_t> stored_jobs() {
    std::vector<uint32_t> jobs;
    for (uint32_t job = 1; job <= plain_.jobs().size(); ++job) {
      if (plain_.jobs()[job - 1].kind != daemon::CapturedJob::kRender) continue;
      StoredTiles tiles;
      run_plain(job, &tiles, [&] {
        if (tiles.frames().empty())
          ++counts_.kinds["jobs that store nothing"];
        else
          jobs.push_back(job);
      });
    }
    return jobs;
  }

  /// Compares as many random pixels of a job, in all of its layers.
  void check_job(uint32_t job, size_t pixels) {
    StoredTiles tiles;
    run_plain(job, &tiles, [] {});
    if (tiles.frames().empty()) return;
    const auto layers = static_cast<uint32_t>(tiles.frames().size());
    std::map<uint32_t, Maps> maps;
    std::vector<Followed> all;
    for (size_t n = 0; n < pixels; ++n) {
      const uint32_t layer = below(layers);
      const auto frame = tiles.frames().find(layer);
      ++counts_.pixels;
      if (frame == tiles.frames().end()) {
        fail("a layer has no number");
        continue;
      }
      const PixelPlace place = {
          .job = job, .layer = layer, .x = below(frame->second.width), .y = below(frame->second.height)};
      const Maps& of_layer = maps.try_emplace(layer, inspector_, job, layer).first->second;
      if (auto followed = follow(place, tiles, of_layer)) all.push_back(*std::move(followed));
    }
    run_plain(job, nullptr, [&] {
      for (const Followed& followed : all) compare(plain_.space().memory(), followed, counts_);
    });
  }

  /// Nothing: there is nothing to compare, which has been counted.
  std::optional<Followed> follow(PixelPlace place, const StoredTiles& tiles, const Maps& maps) {
    Followed followed;
    followed.place = place;
    std::set<StoredTiles::Image> stored;
    for (uint32_t count = 1; place.sample < count; ++place.sample) {
      const auto history = inspector_.history(place);
      if (!history.ok() || !history->message.empty()) {
        const auto why = history.ok() ? history->message : std::string(history.status().message());
        fail("no history: " + why);
        return std::nullopt;
      }
      if (history->is_cut) {
        ++counts_.excused["more happens than a history has room for"];
        return std::nullopt;
      }
      counts_.wrong += has_gap(*history, place);
      if (place.sample == 0) {
        counts_.wrong += differs(maps, *history, place);
        followed.config = history->config;
        if (history->config.multisample) count = 4;
      }
      const std::vector<PixelEvent> stores = last_stores(*history);
      std::vector<tlb::LoadStore> transfers;
      stored.clear();
      for (const PixelEvent& event : stores) {
        transfers.push_back(event.transfer);
        stored.emplace(event.transfer.buffer, event.transfer.address);
        followed.samples[place.sample].push_back(event.before);
      }
      if (stored != tiles.images(place.layer, place.x, place.y)) {
        ++counts_.wrong;
        std::printf("%s: the history has %zu stores, the job %zu, or others\n", text_of(place).c_str(),
                    stored.size(), tiles.images(place.layer, place.x, place.y).size());
        return std::nullopt;
      }
      if (place.sample == 0) followed.stores = transfers;
      for (const PixelEvent& event : history->events)
        followed.has_fragment = followed.has_fragment || event.kind == PixelEvent::Kind::kFragment;
    }
    if (!stored.empty()) return followed;
    ++counts_.excused["the job leaves the tile as it is"];
    return std::nullopt;
  }

  Inspector& inspector_;
  CapturedPosition& plain_;
  std::mt19937 random_;
  Counts counts_;
};

int refuse(const char* path, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", path, std::string(status.message()).c_str());
  return 1;
}

int check(const char* path, size_t pixels, uint32_t seed) {
  const auto compiler = tools::compiler_of_environment();
  if (!compiler.ok()) return refuse(path, compiler.status());
  auto inspector = Inspector::open(path, compiler->get());
  if (!inspector.ok()) return refuse(path, inspector.status());
  auto plain = CapturedPosition::open(path, compiler->get());
  if (!plain.ok()) return refuse(path, plain.status());
  return HistoryCheck(**inspector, **plain, seed).run(pixels) ? 0 : 1;
}

}  // namespace
}  // namespace v3d::inspect

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  return v3d::inspect::check(argv[1], std::strtoul(argv[2], nullptr, 10), argc == 4 ? std::atoi(argv[3]) : 1);
}
