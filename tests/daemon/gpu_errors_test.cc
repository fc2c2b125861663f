/// What is remembered of GPU errors, and told to the run that they belong to.

#include "daemon/gpu_errors.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "daemon/job_report.h"
#include "daemon/run_report.h"
#include "ioctl/base/unique_fd.h"

namespace v3d::daemon {
namespace {

using ioctl::Queue;
using testing::HasSubstr;

ioctl::Job make_job(Queue queue) {
  ioctl::Job job(queue);
  job.client = std::make_shared<ioctl::ClientInfo>();
  job.done = std::make_shared<ioctl::Fence>("t", "t", 1, 12);
  return job;
}

/// The file of a run, in this process.
class Report {
 public:
  explicit Report(std::string_view head = kRunReportHead, const char* name = "v3demu-run",
                  int seals = F_SEAL_SHRINK)
      : fd_(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    EXPECT_EQ(fcntl(fd_.get(), F_ADD_SEALS, seals), 0);
    EXPECT_EQ(write(fd_.get(), head.data(), head.size()), static_cast<ssize_t>(head.size()));
  }
  std::string name() const { return run_report_name(getpid(), fd_.get()); }
  std::string text() const {
    std::string text(kMostRunBytes * 2, '\0');
    text.resize(static_cast<size_t>(pread(fd_.get(), text.data(), text.size(), 0)));
    return text;
  }

 private:
  ioctl::UniqueFd fd_;
};

TEST(GpuErrorsTest, RemembersTheLastInMemoryOfAFixedSize) {
  GpuErrors errors;
  const ioctl::Job job = make_job(Queue::kRender);
  ioctl::User user{7, "a program of a long name", nullptr, {}};
  for (int i = 1; i <= 100; ++i)
    errors.add(i % 2 ? GpuErrorKind::kHang : GpuErrorKind::kRefused, job, user,
               std::to_string(i) + "\nof " + std::string(5000, 'x'));
  EXPECT_EQ(errors.count(GpuErrorKind::kHang), 50u);
  EXPECT_EQ(errors.count(GpuErrorKind::kFault), 0u);
  const auto last = errors.last();
  ASSERT_EQ(last.size(), GpuErrors::kRemembered);
  EXPECT_EQ(last.front().number, 85u);
  EXPECT_EQ(last.back().number, 100u);
  EXPECT_EQ(last.back().kind, GpuErrorKind::kRefused);
  EXPECT_EQ(last.back().program, "a program of a l");
  EXPECT_THAT(last.back().text, HasSubstr("100 of xxx"));
  EXPECT_EQ(last.back().text.size(), GpuErrors::kMostText);
}

TEST(GpuErrorsTest, AJobsEndTellsTheRunOfItsUser) {
  GpuErrors errors;
  const Report report, outer;
  const ioctl::Job job = make_job(Queue::kBin);
  ioctl::User user{7, "prog", nullptr, {}, report.name() + "," + outer.name()};
  device::JobResult result;
  EXPECT_EQ(settle(job, user, result, &errors), 0);
  EXPECT_EQ(report.text(), kRunReportHead);
  result.faults = {3, 0x1234};
  result.fault_place = "in the vertex program at 0x00001000, at pc 0x00001008 (nop)";
  EXPECT_EQ(settle(job, user, result, &errors), 0);  // the job went on
  result = {};
  result.end = device::JobResult::End::kError;
  result.message = "unknown packet 99";
  EXPECT_EQ(settle(job, user, result, &errors), ECANCELED);
  result.end = device::JobResult::End::kCancelled;  // its client has gone
  settle(job, user, result, &errors);
  const std::string number = std::to_string(job.done->seqno());
  EXPECT_EQ(report.text(), std::string(kRunReportHead) + "fault prog (pid 7), bin job " + number +
                               ": 3 accesses to memory that is not mapped, the first at 0x00001234, in the "
                               "vertex program at 0x00001000, at pc 0x00001008 (nop)\n"
                               "refused prog (pid 7), bin job " +
                               number + ": unknown packet 99\n");
  EXPECT_EQ(outer.text(), report.text());
}

TEST(GpuErrorsTest, AReportIsBoundedAndCountsLongerThanItTells) {
  const Report report;
  const std::string text(400, 'x');
  for (int i = 0; i < 50'000; ++i) add_to_run_reports(report.name(), "hang", text);
  const std::string all = report.text();
  EXPECT_LE(all.size(), static_cast<size_t>(kMostRunBytes) + text.size());
  EXPECT_GE(all.size(), static_cast<size_t>(kMostRunBytes));
  EXPECT_THAT(all.substr(kMostRunDetails + 1000, 10), "hang\nhang\n");
}

TEST(GpuErrorsTest, NothingElseIsWrittenTo) {
  const Report other("another file\n");
  char path[] = "/tmp/v3demu-test-XXXXXX";
  const ioctl::UniqueFd file(mkstemp(path));
  ASSERT_EQ(write(file.get(), kRunReportHead.data(), kRunReportHead.size()),
            static_cast<ssize_t>(kRunReportHead.size()));
  const Report of_another_name(kRunReportHead, "run"), unsealed(kRunReportHead, "v3demu-run", 0);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  for (const std::string& name :
       {other.name(), std::string(path), std::string("/proc/self/fd/1"), std::string(",,"),
        run_report_name(getpid(), 9999), run_report_name(getpid(), pipe_ends[0]),
        std::string("/proc/1/fd/../x"), run_report_name(getpid(), file.get()), of_another_name.name(),
        unsealed.name()})
    add_to_run_reports(name, "hang", "text");
  EXPECT_EQ(other.text(), "another file\n");
  EXPECT_EQ(of_another_name.text(), kRunReportHead);
  EXPECT_EQ(unsealed.text(), kRunReportHead);
  EXPECT_EQ(lseek(file.get(), 0, SEEK_END), static_cast<off_t>(kRunReportHead.size()));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  unlink(path);
}

}  // namespace
}  // namespace v3d::daemon
