/// What answers of all kinds are made with.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gpu/cle/packet.h"
#include "tools/inspect/answers.h"

namespace v3d::inspect {

using Json = nlohmann::ordered_json;

/// Of an enumeration of packets, as listings have it.
template <typename Value>
const char* name_of(cle::FieldType type, Value value) {
  const char* const name = cle::value_name(type, static_cast<uint32_t>(value));
  return name != nullptr ? name : "?";
}

std::string hex(uint32_t value);
/// What stands in captures need not be text.
std::string text_of(const Json& json);

Answer good(const Json& json);
Answer wrong(int status, const std::string& message);
Answer wrong(const absl::Status& status);
Answer with_pixels(const Json& json, const std::vector<uint32_t>& pixels);

/// The numbers that a question comes with.
class Numbers {
 public:
  /// @param parameters  outlives the object
  explicit Numbers(const Parameters& parameters) : parameters_(parameters) {}

  /// @param otherwise  where there is none; nothing: there has to be one
  uint32_t get(const char* name, std::optional<uint32_t> otherwise = {});
  /// Empty: nothing.
  const std::string& wrong() const { return wrong_; }

 private:
  const Parameters& parameters_;
  std::string wrong_;
};

}  // namespace v3d::inspect
