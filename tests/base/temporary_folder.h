/// This header has a folder of a test's own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace v3d::test {

/// A folder below /tmp that goes with its object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/v3demu-test-XXXXXX";
    if (!mkdtemp(name)) std::abort();
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    // A daemon that ends takes its socket away meanwhile: what is gone already is no error, but it ends the
    // walk.
    std::error_code error;
    for (int i = 0; i < 100; ++i) {
      std::filesystem::remove_all(path_, error);
      if (!error) return;
    }
  }
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace v3d::test
