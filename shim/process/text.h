/// A Text is a string in a fixed buffer: the shim may run inside malloc.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace v3d::shim {

/// A text of at most N - 1 characters. An append that does not fit marks it as overflowed and changes
/// nothing.
template <size_t N>
class Text {
 public:
  Text() { text_[0] = '\0'; }
  const char* c_str() const { return text_; }
  char* data() { return text_; }
  size_t size() const { return size_; }
  bool overflowed() const { return overflowed_; }
  static constexpr size_t capacity() { return N; }

  Text& add(const char* piece, size_t length) {
    if (length >= N - size_) {
      overflowed_ = true;
      return *this;
    }
    memcpy(text_ + size_, piece, length);
    size_ += length;
    text_[size_] = '\0';
    return *this;
  }
  Text& add(const char* piece) { return add(piece, strlen(piece)); }
  Text& add(char character) { return add(&character, 1); }
  Text& add(uint64_t value, unsigned base = 10) {
    char digits[24];
    size_t at = sizeof(digits);
    do {
      digits[--at] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value);
    return add(digits + at, sizeof(digits) - at);
  }
  void truncate(size_t size) {
    if (size < size_) text_[size_ = size] = '\0';
  }
  void clear() {
    truncate(0);
    overflowed_ = false;
  }
  /// After somebody wrote into data().
  void set_size(size_t size) { text_[size_ = size] = '\0'; }

 private:
  size_t size_ = 0;
  bool overflowed_ = false;
  char text_[N];
};

using Path = Text<PATH_MAX>;

/// `path` is `root` or lies beneath it.
inline bool is_beneath(const char* path, const char* root, size_t root_size) {
  return strncmp(path, root, root_size) == 0 && (path[root_size] == '\0' || path[root_size] == '/');
}
inline bool is_beneath(const char* path, const char* root) { return is_beneath(path, root, strlen(root)); }
inline bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

}  // namespace v3d::shim
