/// CodeMemory is host memory for code: it is written once, then executable and never writable again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace v3d::qpu::jit {

class CodeMemory {
 public:
  /// Empty if the host refuses memory, or refuses to execute it.
  static std::optional<CodeMemory> copy_of(std::span<const uint8_t> code);

  CodeMemory(CodeMemory&& other) noexcept;
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  ~CodeMemory();

  const uint8_t* begin() const { return begin_; }
  size_t size() const { return bytes_; }
  /// Of the host: whole pages.
  size_t host_bytes() const { return (bytes_ + kPage - 1) / kPage * kPage; }

 private:
  static constexpr size_t kPage = 4096;

  CodeMemory(uint8_t* begin, size_t bytes) : begin_(begin), bytes_(bytes) {}
  uint8_t* begin_;
  size_t bytes_;
};

}  // namespace v3d::qpu::jit
