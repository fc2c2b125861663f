/// Mesa's descriptions of packets and records are read here, for comparisons of our tables with them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gpu/chip/generation.h"
#include "gpu/cle/packet.h"

namespace v3d::cle {

struct XmlField {
  std::string name, type;
  int start = 0, width = 0, default_value = -1;
  bool minus_one = false;
};

/// A packet or a record.
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

Xml read_xml(const char* path);

/// The enumerations of fields.
extern const std::map<std::string, FieldType> kXmlEnumTypes;

/// Whether a field type of a table reads what the XML type says. Plain integers may have names of their own.
bool same_type(FieldType ours, const XmlField& theirs);

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

}  // namespace v3d::cle
