/// Results of the model as hashes, the same in every build.
///
///   levels_test            prints them, one "NAME HASH" on a line
///   levels_test FILE       compares them with a file of such lines; tells what differs and fails then
#include <cinttypes>
#include <cstdio>
#include <map>

#include "tests/levels/results.h"

namespace v3d::levels {
namespace {

Results all_results() {
  Results results;
  add_operations(results);
  add_programs(results);
  add_textures(results);
  add_tiles(results);
  add_triangles(results);
  return results;
}

/// @return  the number of differences, or -1 when the file cannot be read
int compare(const Results& results, const char* path) {
  FILE* const file = fopen(path, "re");
  if (!file) return perror(path), -1;
  std::map<std::string, uint64_t> expected;
  char name[128];
  for (uint64_t hash; fscanf(file, "%127s %" SCNx64, name, &hash) == 2;) expected[name] = hash;
  fclose(file);
  int differences = 0;
  for (const auto& [own_name, hash] : results) {
    const auto found = expected.find(own_name);
    const bool known = found != expected.end();
    if (known && found->second == hash) {
      expected.erase(found);
      continue;
    }
    printf("%s: %016" PRIx64 "%s\n", own_name.c_str(), hash,
           known ? " is another result" : " is not in the file");
    if (known) expected.erase(found);
    ++differences;
  }
  for (const auto& [missing, hash] : expected) {
    printf("%s: in the file only\n", missing.c_str());
    ++differences;
  }
  printf("%zu results, %d differences\n", results.size(), differences);
  return differences;
}

}  // namespace
}  // namespace v3d::levels

int main(int argc, char** argv) {
  const v3d::levels::Results results = v3d::levels::all_results();
  if (argc > 1) return v3d::levels::compare(results, argv[1]) == 0 ? 0 : 1;
  for (const auto& [name, hash] : results) printf("%s %016" PRIx64 "\n", name.c_str(), hash);
  return 0;
}
