#include "tools/inspect/memory_view.h"

namespace v3d::inspect {
namespace {

std::optional<uint32_t> word_at(mmu::AddressSpace& space, uint32_t address) {
  if (!space.is_mapped(address)) return std::nullopt;
  return space.memory().load<uint32_t>(address);
}

}  // namespace

absl::StatusOr<MemoryView> view_memory(CapturedPosition& position, uint32_t job, uint32_t address) {
  if (job == 0 || job > position.jobs().size()) return absl::NotFoundError("no such job");
  MemoryView view{.address = address & ~3u, .words = {}};
  const uint32_t context = position.jobs()[job - 1].context;
  // Each job of the client found memory as it was then: between which two did the word change?
  std::optional<uint32_t> last;
  uint32_t before = 0;
  const absl::Status scanned = position.scan(job, [&](uint32_t number) {
    if (position.jobs()[number - 1].context != context) return;
    const std::optional<uint32_t> now = position.found(view.address);
    if (before != 0 && now != last) view.job = before;
    last = now;
    before = number;
  });
  if (!scanned.ok()) return scanned;
  for (uint32_t n = 0; n < MemoryView::kWords; ++n)
    view.words.push_back(word_at(position.space(), view.address + 4 * n));
  if (view.job == 0) return view;
  view.by = MemoryView::By::kProgram;
  if (absl::Status status = position.seek(view.job); !status.ok()) return status;
  if (position.job().kind == daemon::CapturedJob::kUser) return view;
  const std::optional<uint32_t> found = word_at(position.space(), view.address);
  position.run({});
  const std::optional<uint32_t> left = word_at(position.space(), view.address);
  position.restore();
  if (left != found) view.by = MemoryView::By::kJob;
  return view;
}

}  // namespace v3d::inspect
