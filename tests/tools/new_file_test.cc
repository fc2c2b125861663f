#include "tools/cli/files/new_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "ioctl/base/unique_fd.h"
#include "tests/tools/command_test.h"
#include "tools/cli/files/png_file.h"

namespace v3d::tools {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public CommandTest {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  static std::string contents(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
};

TEST_F(NewFileTest, HasItsNameWhenItIsWhole) {
  ASSERT_TRUE(replace_file(path("a"), "old").ok());
  NewFile file(path("a"));
  ASSERT_TRUE(file.begin().ok());
  fputs("new", file.stream());
  EXPECT_EQ(contents(path("a")), "old");
  EXPECT_TRUE(file.draft().ends_with("a"));
  ASSERT_TRUE(file.finish().ok());
  EXPECT_EQ(contents(path("a")), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(NewFileTest, LeavesNothingWithoutItsEnd) {
  {
    NewFile file(path("a"));
    ASSERT_TRUE(file.begin().ok());
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(NewFileTest, ReplacesWhatALinkLeadsTo) {
  ASSERT_TRUE(replace_file(path("a"), "old").ok());
  fs::create_symlink("a", path("link"));
  ASSERT_TRUE(replace_file(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(contents(path("a")), "new");
  fs::create_symlink("nowhere", path("dangling"));
  EXPECT_EQ(replace_file(path("dangling"), "new").message(),
            path("dangling") + ": No such file or directory");
}

TEST_F(NewFileTest, TakesAnyNameThatAFileMayHave) {
  const std::string longest = path(std::string(NAME_MAX - 4, 'n') + ".png");
  NewFile file(longest);
  ASSERT_TRUE(file.begin().ok());
  EXPECT_TRUE(file.draft().ends_with(".png"));
  ASSERT_TRUE(file.finish().ok());
  EXPECT_TRUE(fs::exists(longest));
  EXPECT_EQ(replace_file(path(std::string(NAME_MAX + 1, 'n')), "x").message(),
            path(std::string(NAME_MAX + 1, 'n')) + ": File name too long");
  EXPECT_EQ(files(), 1u);
}

TEST_F(NewFileTest, TwoOfOneNameDoNotDisturbEachOther) {
  NewFile first(path("a")), second(path("a"));
  ASSERT_TRUE(first.begin().ok());
  ASSERT_TRUE(second.begin().ok());
  EXPECT_NE(first.draft(), second.draft());
  fputs("second", second.stream());
  fputs("first", first.stream());
  ASSERT_TRUE(first.finish().ok());
  EXPECT_EQ(contents(path("a")), "first");
  ASSERT_TRUE(second.finish().ok());
  EXPECT_EQ(contents(path("a")), "second");
  EXPECT_EQ(files(), 1u);
}

TEST_F(NewFileTest, SaysWhyItCannotReplaceAFile) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write to any folder";
  ASSERT_TRUE(replace_file(path("a"), "old").ok());
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(replace_file(path("a"), "new").message(),
            path("a") + ": no file can be made beside it to replace it: Permission denied");
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(contents(path("a")), "old");
}

TEST_F(NewFileTest, TellsThatAWriteFailedWhateverHappenedSince) {
  {
    NewFile file(path("a"));
    ASSERT_TRUE(file.begin().ok());
    setvbuf(file.stream(), nullptr, _IONBF, 0);
    const ioctl::UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
    dup2(full.get(), fileno(file.stream()));
    fputs("x", file.stream());
    errno = EEXIST;
    EXPECT_EQ(file.finish().message(), path("a") + ": not all of it could be written");
  }
  EXPECT_EQ(files(), 0u);
}

// As root as well, who may rename over all of them.
TEST_F(NewFileTest, ReplacesNothingButFiles) {
  fs::create_directory(path("folder"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/null", path("device"));
  for (const std::string& name : {path("folder"), path("pipe"), path("device"), std::string("/dev/null")}) {
    EXPECT_EQ(replace_file(name, "x").message(), name + ": this is no regular file, and stays as it is");
    const uint8_t pixel[4] = {};
    EXPECT_FALSE(save_rgba(name, 1, 1, pixel).ok()) << name;
    EXPECT_FALSE(save_png(name, ioctl::kms::Image(1, 1)).ok()) << name;
  }
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(files(), 3u);
}

}  // namespace
}  // namespace v3d::tools
