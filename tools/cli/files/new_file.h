/// A NewFile takes its name when it is whole.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace v3d::tools {

/// Where the contents of a file go meanwhile: beside it, under a name of this process that ends as its own.
/// Where a symbolic link leads, and not the link, is what is replaced. Only a regular file is, never a
/// folder, a device or a pipe: these are an error, as is a link that leads nowhere.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  /// Without finish() nothing is left of it.
  ~NewFile();

  /// An empty file. An error names the path and the reason.
  absl::Status begin();
  FILE* stream() const { return stream_; }
  /// Its name, until finish().
  const std::string& draft() const { return draft_; }
  /// Flushes, and gives the file its name.
  absl::Status finish();

 private:
  /// As open(2), with its name in draft_.
  int open_draft();
  absl::Status failed(const std::string& why) const;

  const std::string path_;
  std::string target_, draft_;
  FILE* stream_ = nullptr;
};

/// A file with these contents, or an error.
absl::Status replace_file(const std::string& path, const std::string& contents);

}  // namespace v3d::tools
