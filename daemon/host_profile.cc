#include "daemon/host_profile.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gpu/qpu/jit/jit.h"

namespace v3d::daemon {
namespace {

using host_time::Totals;

/// Rows of a table that are shown.
constexpr size_t kShown = 20;
/// A program of which more is interpreted is named: less is what runs before it is worth compiling.
constexpr double kMuchInterpreted = 0.02;

double ms(uint64_t ns) { return static_cast<double>(ns) * 1e-6; }
double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
double us_each(uint64_t ns, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(ns) * 1e-3 / static_cast<double>(count);
}

/// The rows of a map, those that took longest first.
template <typename Map, typename Time>
std::vector<typename Map::const_pointer> longest_first(const Map& map, Time time) {
  std::vector<typename Map::const_pointer> rows;
  rows.reserve(map.size());
  for (const auto& row : map) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const auto* a, const auto* b) { return time(a->second) > time(b->second); });
  return rows;
}

void tell_more(size_t rows, std::string* text) {
  if (rows > kShown) absl::StrAppendFormat(text, "  and %d more\n", rows - kShown);
}

std::string jobs_text(const Totals& totals) {
  std::string text = "jobs";
  for (size_t i = 0; i < host_time::kNumJobs; ++i)
    if (totals.jobs[i] != 0)
      absl::StrAppendFormat(&text, "%s %d %s in %.1f ms", text == "jobs" ? ":" : ",", totals.jobs[i],
                            name(static_cast<host_time::Job>(i)), ms(totals.job_ns[i]));
  return absl::StrFormat("%s\nthreads: %.1f ms in all\n", text, ms(totals.thread_ns()));
}

std::string blocks_text(const Totals& totals) {
  std::vector<std::pair<uint64_t, size_t>> blocks;
  for (size_t i = 0; i < host_time::kNumBlocks; ++i)
    if (totals.blocks[i] != 0) blocks.emplace_back(totals.blocks[i], i);
  std::sort(blocks.rbegin(), blocks.rend());
  std::string text = "\nblock                          ms      %\n";
  for (const auto& [ns, block] : blocks)
    absl::StrAppendFormat(&text, "  %-22s %9.2f  %5.1f\n", name(static_cast<host_time::Block>(block)), ms(ns),
                          100 * share(ns, totals.thread_ns()));
  return text;
}

std::string program_name(const host_time::ProgramKey& key) {
  return absl::StrFormat("%s 0x%08x", std::get<0>(key), std::get<1>(key));
}

std::string programs_text(const Totals& totals) {
  const auto rows = longest_first(totals.programs, [](const host_time::Program& p) { return p.ns; });
  if (rows.empty()) return "";
  std::string text =
      "\nQPU program                    ms      %    batches  ns each  instructions  interpreted\n";
  for (size_t i = 0; i < std::min(rows.size(), kShown); ++i) {
    const auto& [key, p] = *rows[i];
    absl::StrAppendFormat(&text, "  %-22s %9.2f  %5.1f  %9d  %7.0f  %12d  %10.1f%%\n", program_name(key),
                          ms(p.ns), 100 * share(p.ns, totals.thread_ns()), p.batches,
                          1e3 * us_each(p.ns, p.batches), p.instructions,
                          100 * share(p.interpreted, p.instructions));
  }
  tell_more(rows.size(), &text);
  return text;
}

std::string draws_text(const Totals& totals) {
  const auto rows =
      longest_first(totals.draws, [](const host_time::Draw& d) { return d.bin_ns + d.render_ns; });
  if (rows.empty()) return "";
  std::string text =
      "\ndraws: vertices, their program, that of fragments       times  us binned  us rendered\n";
  for (size_t i = 0; i < std::min(rows.size(), kShown); ++i) {
    const auto& [key, d] = *rows[i];
    absl::StrAppendFormat(&text, "  %10d  0x%08x  0x%08x                 %9d  %9.1f  %11.1f\n", key.vertices,
                          key.vertex_program, key.fragment_program, d.times, us_each(d.bin_ns, d.times),
                          us_each(d.render_ns, d.times));
  }
  tell_more(rows.size(), &text);
  return text;
}

std::string why_interpreted(const Totals& totals, uint32_t address, const host_time::Program& program) {
  const auto reason = totals.not_compiled.find(address);
  if (reason != totals.not_compiled.end()) return " (" + reason->second + ")";
  return program.interpreted < qpu::jit::kWorthIt ? " (too few to be worth compiling)" : "";
}

std::string interpreted_text(const Totals& totals) {
  std::string text;
  for (const auto* row : longest_first(totals.programs, [](const auto& p) { return p.interpreted; })) {
    const auto& [key, p] = *row;
    if (share(p.interpreted, p.instructions) < kMuchInterpreted) continue;
    absl::StrAppendFormat(&text, "  %s: %d of %d instructions%s\n", program_name(key), p.interpreted,
                          p.instructions, why_interpreted(totals, std::get<1>(key), p));
  }
  return text.empty() ? "" : "\ninterpreted\n" + text;
}

}  // namespace

std::string host_profile_text(const Totals& totals, const std::string& engine) {
  std::string text = absl::StrCat(jobs_text(totals), blocks_text(totals), programs_text(totals),
                                  draws_text(totals), interpreted_text(totals));
  if (totals.left_out != 0)
    absl::StrAppendFormat(&text, "\nprograms and draws beyond %d, which are not told apart: %d times\n",
                          host_time::kMostRows, totals.left_out);
  return absl::StrCat(text, "\n", engine);
}

}  // namespace v3d::daemon
