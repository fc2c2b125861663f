/// Becomes the program of the same name that was compiled for the most that this processor has. V3DEMU_LEVEL
/// names another: v2, v3 or v4.

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { kUnusable = 2, kMaxFeatures = 8 };

struct Feature {
  const char* name;
  bool present;
};

/// A level of x86-64, and what it has beyond the level before.
struct Level {
  const char* name;
  bool supported;
  struct Feature features[kMaxFeatures];
};

#define FEATURE(name) \
  { name, __builtin_cpu_supports(name) != 0 }

/// The last component of a path.
static const char* file_of(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/// The folder of this program, with a slash after it. Without /proc, what it was started as has to do.
static bool own_folder(char* folder) {
  const long length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
  if (length > 0) {
    folder[length] = 0;
  } else {
    const char* started = (const char*)getauxval(AT_EXECFN);
    if (!started || !realpath(started, folder)) return false;
  }
  folder[file_of(folder) - folder] = 0;
  return true;
}

static void print_missing(const struct Level* levels, const struct Level* last) {
  for (const struct Level* level = levels; level <= last; ++level)
    for (int i = 0; i < kMaxFeatures && level->features[i].name; ++i)
      if (!level->features[i].present) fprintf(stderr, " %s", level->features[i].name);
}

int main(int argc, char** argv) {
  (void)argc;
  __builtin_cpu_init();
  const struct Level levels[] = {
      {"v2",
       __builtin_cpu_supports("x86-64-v2") != 0,
       {FEATURE("popcnt"), FEATURE("sse3"), FEATURE("ssse3"), FEATURE("sse4.1"), FEATURE("sse4.2")}},
      {"v3",
       __builtin_cpu_supports("x86-64-v3") != 0,
       {FEATURE("avx"), FEATURE("avx2"), FEATURE("bmi"), FEATURE("bmi2"), FEATURE("fma"), FEATURE("f16c"),
        FEATURE("lzcnt"), FEATURE("movbe")}},
      {"v4",
       __builtin_cpu_supports("x86-64-v4") != 0,
       {FEATURE("avx512f"), FEATURE("avx512bw"), FEATURE("avx512cd"), FEATURE("avx512dq"),
        FEATURE("avx512vl")}},
  };
  enum { kLevels = sizeof(levels) / sizeof(*levels) };

  char folder[PATH_MAX];
  if (!own_folder(folder)) {
    fprintf(stderr, V3DEMU_PROGRAM ": cannot tell where this program is: /proc is not mounted\n");
    return kUnusable;
  }
  const char* asked = getenv("V3DEMU_LEVEL");
  if (asked && !*asked) asked = NULL;
  const struct Level* lowest = NULL;  // of those that are installed
  bool known = false;
  for (int n = kLevels - 1; n >= 0; --n) {
    const struct Level* level = &levels[n];
    if (asked && strcmp(asked, level->name) != 0) continue;
    known = true;
    char path[2 * PATH_MAX];
    snprintf(path, sizeof(path), "%s" V3DEMU_PROGRAMS V3DEMU_PROGRAM "-%s", folder, level->name);
    if (access(path, X_OK) != 0) continue;
    lowest = level;
    if (!level->supported) continue;
    execv(path, argv);
    fprintf(stderr, V3DEMU_PROGRAM ": cannot run %s: %s\n", path, strerror(errno));
    return kUnusable;
  }
  if (asked && !known) {
    fprintf(stderr, V3DEMU_PROGRAM ": no level \"%s\" (V3DEMU_LEVEL): there are v2, v3 and v4\n", asked);
  } else if (!lowest) {
    fprintf(stderr, V3DEMU_PROGRAM ": no " V3DEMU_PROGRAM "-%s in %s" V3DEMU_PROGRAMS "\n",
            asked ? asked : "v2, -v3 or -v4", folder);
  } else {
    fprintf(stderr, V3DEMU_PROGRAM ": this processor does not run x86-64-%s%s; it lacks:", lowest->name,
            asked ? " (V3DEMU_LEVEL)" : "");
    print_missing(levels, lowest);
    fputc('\n', stderr);
  }
  return kUnusable;
}
