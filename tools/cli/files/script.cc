#include "tools/cli/files/script.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "tools/cli/files/files.h"

namespace v3d::tools {

int run_script(const std::string& command, const std::string& name, const std::vector<std::string>& words) {
  std::error_code error;
  std::vector<std::string> all = {find_script(name), "--v3demu",
                                  std::filesystem::read_symlink("/proc/self/exe", error)};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  arguments.reserve(all.size() + 1);
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  fflush(stdout);  // what it says comes after what was said
  execv(arguments[0], arguments.data());
  fprintf(stderr, "v3demu %s: %s: %s; it needs python3\n", command.c_str(), arguments[0], strerror(errno));
  return 1;
}

}  // namespace v3d::tools
