#include "daemon/json_writer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace v3d::daemon {

void JsonWriter::separate() {
  if (follows_) text_ += ',';
  follows_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  follows_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  follows_ = true;
  return *this;
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&text_, "\\u%04x", c);
      continue;
    }
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
  }
  text_ += '"';
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ':';
  follows_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(uint64_t number) {
  separate();
  absl::StrAppend(&text_, number);
  return *this;
}

JsonWriter& JsonWriter::value(bool is) {
  separate();
  text_ += is ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::value(double number) {
  separate();
  absl::StrAppendFormat(&text_, "%.6g", number);
  return *this;
}

JsonWriter& JsonWriter::time(uint64_t ns) {
  separate();
  absl::StrAppendFormat(&text_, "%d.%03d", ns / 1000, ns % 1000);
  return *this;
}

JsonWriter& JsonWriter::on_new_line() {
  // After the comma that the next value would write.
  if (follows_) text_ += ',';
  follows_ = false;
  text_ += '\n';
  return *this;
}

}  // namespace v3d::daemon
