/// A JsonWriter writes JSON as text, without blanks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace v3d::daemon {

/// Values in the order in which they are written; within objects each after its key. Misuse makes no valid
/// JSON.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(uint64_t number);
  JsonWriter& value(uint32_t number) { return value(uint64_t{number}); }
  JsonWriter& value(int number) { return value(static_cast<uint64_t>(number)); }  ///< not below 0
  JsonWriter& value(bool is);
  JsonWriter& null();
  /// Rounded to six digits.
  JsonWriter& value(double number);
  /// A time in microseconds, exactly.
  JsonWriter& time(uint64_t ns);
  template <typename T>
  JsonWriter& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  /// Text as it is, that is a value already.
  JsonWriter& raw(std::string_view json);
  /// The next value begins a line.
  JsonWriter& on_new_line();

  std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void quote(std::string_view text);

  std::string text_;
  bool follows_ = false;  // another value of the same object or array
};

}  // namespace v3d::daemon
