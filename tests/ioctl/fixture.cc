#include "tests/ioctl/fixture.h"

#include "gpu/draw/bin_result.h"

namespace v3d::ioctl::test {

device::JobResult FakeGpu::Context::run_bin(const device::ClJob& job, JobControl&,
                                            std::shared_ptr<const draw::BinResult>* result) {
  gpu_.bin = job;
  ++gpu_.bins;
  *result = std::make_shared<draw::BinResult>();
  return gpu_.done();
}

}  // namespace v3d::ioctl::test
