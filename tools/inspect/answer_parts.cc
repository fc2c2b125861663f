#include "tools/inspect/answer_parts.h"

#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace v3d::inspect {

std::string hex(uint32_t value) { return absl::StrFormat("0x%08x", value); }

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Answer good(const Json& json) { return {200, true, text_of(json)}; }

Answer wrong(int status, const std::string& message) {
  return {status, true, text_of(Json{{"error", message}})};
}

Answer wrong(const absl::Status& status) {
  const int code = absl::IsNotFound(status)          ? 404
                   : absl::IsInvalidArgument(status) ? 400
                   : absl::IsUnimplemented(status)   ? 501
                                                     : 500;
  return wrong(code, std::string(status.message()));
}

Answer with_pixels(const Json& json, const std::vector<uint32_t>& pixels) {
  const std::string head = text_of(json);
  const auto size = static_cast<uint32_t>(head.size());
  Answer answer{200, false, std::string(4, '\0')};
  std::memcpy(answer.body.data(), &size, sizeof size);
  answer.body += head;
  answer.body.append(reinterpret_cast<const char*>(pixels.data()), pixels.size() * sizeof pixels[0]);
  return answer;
}

uint32_t Numbers::get(const char* name, std::optional<uint32_t> otherwise) {
  const std::optional<std::string> text = parameters_(name);
  uint32_t number = 0;
  if (!text && otherwise) return *otherwise;
  if (!text || !absl::SimpleAtoi(*text, &number))
    wrong_ = absl::StrCat(text ? "no number: " : "a number is missing: ", name);
  return number;
}

}  // namespace v3d::inspect
