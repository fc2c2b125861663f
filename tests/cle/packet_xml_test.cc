/// Compares the packet table with Mesa's description of the same packets. Without V3DEMU_MESA there is
/// nothing to compare with and the file is empty (said at configure time).
#ifdef V3DEMU_PACKET_XML

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gpu/cle/packet_table.h"
#include "gtest/gtest.h"

namespace v3d::cle {
namespace {

struct XmlField {
  std::string name, type;
  int start = 0, width = 0, default_value = -1;
  bool minus_one = false;
};

struct XmlLayout {
  bool is_packet = false;
  int opcode = 0;
  int min_version = 0, max_version = 1000;
  std::string name;
  std::vector<XmlField> fields;

  bool in(chip::Generation generation) const {
    const int number = version_number(generation);
    return min_version <= number && number <= max_version;
  }
  int length() const {
    int bits = 0;
    for (const XmlField& f : fields) bits = std::max(bits, f.start + f.width);
    return (bits + 7) / 8 + (is_packet ? 1 : 0);
  }
  int sub_id() const {
    for (const XmlField& f : fields)
      if (f.name == "sub-id") return f.default_value;
    return -1;
  }
};

struct Xml {
  std::vector<XmlLayout> layouts;
  std::map<std::string, std::map<int, std::string>> enums;
};

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

Xml read_xml() {
  std::ifstream file(V3DEMU_PACKET_XML);
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

const std::map<std::string, FieldType> kEnumTypes = {
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

/// Whether a field type of the table reads what the XML type says. Plain integers may have names of their
/// own.
bool same_type(FieldType ours, const XmlField& theirs) {
  if (theirs.minus_one) return ours == FieldType::kMinusOne;
  if (theirs.type == "bool") return ours == FieldType::kBool;
  if (theirs.type == "address") return ours == FieldType::kAddress;
  if (theirs.type == "float") return ours == FieldType::kFloat;
  if (theirs.type == "f187") return ours == FieldType::kBf16;
  if (theirs.type == "u14.8") return ours == FieldType::kFixed8;
  if (theirs.type == "int") return ours == FieldType::kInt;
  if (theirs.type == "uint") return ours == FieldType::kUint || ours >= FieldType::kPrimitive;
  const auto it = kEnumTypes.find(theirs.type);
  return it != kEnumTypes.end() && it->second == ours;
}

template <typename Info>
void expect_same_layout(const Info& ours, const XmlLayout& theirs) {
  SCOPED_TRACE(theirs.name);
  EXPECT_STREQ(ours.name, theirs.name.c_str());
  EXPECT_EQ(ours.length, theirs.length());
  size_t count = 0;
  for (const Field& f : ours.fields) {
    if (f.name == nullptr) continue;
    ++count;
    const auto it = std::find_if(theirs.fields.begin(), theirs.fields.end(), [&](const XmlField& x) {
      return x.name == f.name && x.start == f.start && x.width == f.width;
    });
    ASSERT_NE(it, theirs.fields.end()) << f.name;
    EXPECT_TRUE(same_type(f.type, *it)) << f.name << ": " << it->type;
  }
  EXPECT_EQ(count, theirs.fields.size());
}

class PacketXml : public testing::TestWithParam<chip::Generation> {};

TEST_P(PacketXml, PacketsAgree) {
  const chip::Generation generation = GetParam();
  const Xml xml = read_xml();
  size_t compared = 0, rows = 0;
  for (const XmlLayout& theirs : xml.layouts) {
    if (!theirs.is_packet || !theirs.in(generation)) continue;
    const PacketInfo* ours = nullptr;
    for (const PacketInfo& p : packet_table::kPackets) {
      if (static_cast<int>(p.opcode) == theirs.opcode && (p.generations & set_of(generation)) != 0 &&
          p.sub_id == theirs.sub_id())
        ours = &p;
    }
    ASSERT_NE(ours, nullptr) << theirs.name;
    expect_same_layout(*ours, theirs);
    ++compared;
  }
  for (const PacketInfo& p : packet_table::kPackets) rows += (p.generations & set_of(generation)) != 0;
  EXPECT_EQ(compared, rows);
  EXPECT_GT(compared, 80u);
}

TEST_P(PacketXml, RecordsAgree) {
  const chip::Generation generation = GetParam();
  const Xml xml = read_xml();
  // Records of the TMU, and words for a VPM set-up that programs of these generations do not have.
  const std::vector<std::string> elsewhere = {"TMU Config Parameter 0",
                                              "TMU Config Parameter 1",
                                              "TMU Config Parameter 2",
                                              "Texture Shader State",
                                              "Sampler State",
                                              "VPM generic block write setup",
                                              "VPM generic block read setup",
                                              "Transform Feedback Output Address"};
  size_t compared = 0;
  for (const XmlLayout& theirs : xml.layouts) {
    if (theirs.is_packet || !theirs.in(generation)) continue;
    if (std::find(elsewhere.begin(), elsewhere.end(), theirs.name) != elsewhere.end()) continue;
    const auto* ours = std::find_if(
        std::begin(packet_table::kRecords), std::end(packet_table::kRecords), [&](const RecordInfo& r) {
          return theirs.name == r.name && (r.generations & set_of(generation)) != 0;
        });
    ASSERT_NE(ours, std::end(packet_table::kRecords)) << theirs.name;
    expect_same_layout(*ours, theirs);
    ++compared;
  }
  EXPECT_GE(compared, 7u);
}

INSTANTIATE_TEST_SUITE_P(Versions, PacketXml, testing::Values(chip::Generation::k42, chip::Generation::k71),
                         [](const auto& p) { return std::to_string(version_number(p.param)); });

TEST(PacketXmlEnums, EveryValueHasAName) {
  const Xml xml = read_xml();
  for (const auto& [name, type] : kEnumTypes) {
    ASSERT_TRUE(xml.enums.contains(name)) << name;
    for (const auto& [value, value_text] : xml.enums.at(name)) {
      if (type == FieldType::kTypeClamp && value == 32) continue;  // "invalid" does not fit the field
      EXPECT_NE(value_name(type, static_cast<uint32_t>(value)), nullptr) << name << " " << value_text;
    }
  }
}

}  // namespace
}  // namespace v3d::cle

#endif  // V3DEMU_PACKET_XML
