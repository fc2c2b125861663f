#include "tests/cle/packet_xml.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace v3d::cle {
namespace {

using Attributes = std::map<std::string, std::string>;

int number(const Attributes& a, const char* key, int otherwise) {
  const auto it = a.find(key);
  if (it == a.end()) return otherwise;
  const int value = std::atoi(it->second.c_str());
  return it->second.back() == 'b' ? value * 8 : value;  // "16b": bytes
}

/// Name and attributes of a tag, without its angle brackets.
std::pair<std::string, Attributes> parse_tag(const std::string& tag) {
  size_t pos = tag.find_first_of(" \t\n/", 1);
  std::pair<std::string, Attributes> result{tag.substr(0, pos), {}};
  while (pos != std::string::npos) {
    const size_t key = tag.find_first_not_of(" \t\n/", pos);
    const size_t open = tag.find('"', pos);
    if (key == std::string::npos || open == std::string::npos) break;
    const size_t close = tag.find('"', open + 1);
    result.second[tag.substr(key, tag.find('=', key) - key)] = tag.substr(open + 1, close - open - 1);
    pos = close + 1;
  }
  return result;
}

}  // namespace

Xml read_xml(const char* path) {
  std::ifstream file(path);
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  Xml xml;
  std::string open_enum;
  for (size_t pos = 0; (pos = text.find('<', pos)) != std::string::npos;) {
    if (text.compare(pos, 4, "<!--") == 0) {
      pos = text.find("-->", pos);
      continue;
    }
    const size_t end = text.find('>', pos);
    const auto [name, a] = parse_tag(text.substr(pos + 1, end - pos - 1));
    pos = end;
    if (name == "packet" || name == "struct") {
      xml.layouts.push_back({name == "packet",
                             number(a, "code", 0),
                             number(a, "min_ver", 0),
                             number(a, "max_ver", 1000),
                             a.at("name"),
                             {}});
    } else if (name == "field") {
      xml.layouts.back().fields.push_back({a.at("name"), a.at("type"), number(a, "start", 0),
                                           number(a, "size", 0), number(a, "default", -1),
                                           a.contains("minus_one")});
    } else if (name == "enum") {
      open_enum = a.at("name");
    } else if (name == "/enum") {
      open_enum.clear();
    } else if (name == "value" && !open_enum.empty()) {
      xml.enums[open_enum][number(a, "value", 0)] = a.at("name");
    }
  }
  return xml;
}

const std::map<std::string, FieldType> kXmlEnumTypes = {
    {"Primitive", FieldType::kPrimitive},
    {"Compare Function", FieldType::kCompare},
    {"Blend Factor", FieldType::kBlendFactor},
    {"Blend Mode", FieldType::kBlendMode},
    {"Stencil Op", FieldType::kStencilOp},
    {"Varying Flags Action", FieldType::kVaryingAction},
    {"Memory Format", FieldType::kMemoryFormat},
    {"Output Image Format", FieldType::kImageFormat},
    {"Decimate Mode", FieldType::kDecimate},
    {"Dither Mode", FieldType::kDither},
    {"Internal Type", FieldType::kInternalType},
    {"Internal BPP", FieldType::kInternalBpp},
    {"Internal Depth Type", FieldType::kInternalDepthType},
    {"Render Target Clamp", FieldType::kRtClamp},
    {"Render Target Type Clamp", FieldType::kTypeClamp},
    {"L2T Flush Mode", FieldType::kL2tFlush},
    {"Line Rasterization", FieldType::kLineRasterization},
    {"Z Clip Mode", FieldType::kZClip},
    {"Pack Mode", FieldType::kPackMode},
    {"TCS flush mode", FieldType::kTcsFlush},
};

bool same_type(FieldType ours, const XmlField& theirs) {
  if (theirs.minus_one) return ours == FieldType::kMinusOne;
  if (theirs.type == "bool") return ours == FieldType::kBool;
  if (theirs.type == "address") return ours == FieldType::kAddress;
  if (theirs.type == "float") return ours == FieldType::kFloat;
  if (theirs.type == "f187") return ours == FieldType::kBf16;
  if (theirs.type == "u14.8") return ours == FieldType::kFixed8;
  if (theirs.type == "s12.4") return ours == FieldType::kSigned4;
  if (theirs.type == "int") return ours == FieldType::kInt;
  if (theirs.type == "uint") return ours == FieldType::kUint || ours >= FieldType::kPrimitive;
  const auto it = kXmlEnumTypes.find(theirs.type);
  return it != kXmlEnumTypes.end() && it->second == ours;
}

}  // namespace v3d::cle
