/// Lists folders without libc's dynamic loader: path, mode in octal, device number.

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    DIR* folder = opendir(argv[i]);
    if (!folder) {
      perror(argv[i]);
      return 1;
    }
    for (const struct dirent* entry; (entry = readdir(folder));) {
      struct stat st;
      char path[4096];
      snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
      if (stat(path, &st) == 0)
        printf("%s %o %u:%u\n", path, st.st_mode, major(st.st_rdev), minor(st.st_rdev));
    }
    closedir(folder);
  }
  return 0;
}
