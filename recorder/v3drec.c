/* libv3drec.so: preloaded into a program on a Raspberry Pi, it records jobs of the program's V3D with the
 * memory that they found and the memory that they left, as a capture that v3demu replays.
 *
 *   gcc -O2 -shared -fPIC -o libv3drec.so v3drec.c -ldl -lpthread
 *   LD_PRELOAD=./libv3drec.so V3DREC_FILE=frame.v3dcap V3DREC_FRAMES=100-102 vkcube
 *
 * Every call goes to the kernel as it is. What is chosen runs alone: its submission waits until all that it
 * depends on has ended, and returns when it has ended itself. */
#define _GNU_SOURCE
#include "v3drec.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

_Static_assert(sizeof(struct v3d_submit_cl) == 72 && sizeof(struct v3d_submit_tfu) == 88 &&
                   sizeof(struct v3d_submit_csd) == 88 && sizeof(struct v3d_multi_sync) == 48 &&
                   sizeof(struct v3d_indirect_csd) == 128 && sizeof(struct v3d_submit_cpu) == 24 &&
                   sizeof(struct vc4_submit_cl) == 176 && sizeof(struct job_record) == 76,
               "the kernel's layout");

/* -- what is to be recorded, as the environment says -------------------------------------------------------
 */

struct range {
  uint32_t first, last;
};
static struct {
  const char* file;
  struct range frames, jobs;
  bool by_frames, by_jobs, all_bos, only_hashes, masks;
  int signal; /* 0: none */
  uint64_t limit;
  int64_t patience_ns;
} settings;
static volatile sig_atomic_t open_by_signal = 1;

__attribute__((format(printf, 1, 2))) static void say(const char* format, ...) {
  char text[512] = "v3drec: ";
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text + 8, sizeof text - 9, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  length = length > (int)sizeof text - 10 ? (int)sizeof text - 2 : length + 8;
  text[length] = '\n';
  const ssize_t written = write(STDERR_FILENO, text, (size_t)length + 1);
  (void)written;
}

/* A number in words; what is none is told, and stays as it was. */
static void read_number(const char* name, uint64_t most, uint64_t* to) {
  const char* text = getenv(name);
  if (!text || !*text) return;
  char* end;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (errno || *end || value == 0 || value > most || *text == '-')
    say("%s=%s is no number from 1 to %llu", name, text, (unsigned long long)most);
  else
    *to = value;
}

static bool read_range(const char* name, struct range* to) {
  const char* text = getenv(name);
  if (!text || !*text) return false;
  char* end;
  const unsigned long first = strtoul(text, &end, 10);
  unsigned long last = first;
  if (*end == '-') last = strtoul(end + 1, &end, 10);
  if (*end || first == 0 || last < first || last > UINT32_MAX || *text == '-') {
    say("%s=%s is no A-B, counted from 1; nothing is recorded", name, text);
    *to = (struct range){1, 0};
    return true;
  }
  *to = (struct range){(uint32_t)first, (uint32_t)last};
  return true;
}

static void on_signal(int number) {
  (void)number;
  open_by_signal = !open_by_signal;
}

static void take_signal(void) {
  static const struct {
    const char* name;
    int number;
  } known_signals[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"WINCH", SIGWINCH}, {"HUP", SIGHUP}};
  const char* text = getenv("V3DREC_SIGNAL");
  if (!text || !*text) return;
  open_by_signal = 0;
  for (size_t i = 0; i < sizeof known_signals / sizeof known_signals[0]; ++i)
    if (strcmp(text, known_signals[i].name) == 0) settings.signal = known_signals[i].number;
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  if (settings.signal) sigaction(settings.signal, &action, NULL);
}

static bool read_choice(const char* name) {
  const char* text = getenv(name);
  if (!text || !*text) return false;
  if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
    say("%s=%s is neither 0 nor 1", name, text);
    return false;
  }
  return *text == '1';
}

/* When the process first has a V3D: no other ones are told what is wrong with it. */
static void read_settings(void) {
  uint64_t limit_mib = 1024, patience_ms = 3000;
  const char* const signal_name = getenv("V3DREC_SIGNAL");
  if (settings.file) return;
  settings.file = getenv("V3DREC_FILE");
  if (!settings.file || !*settings.file) settings.file = "v3drec-%p.v3dcap";
  settings.by_frames = read_range("V3DREC_FRAMES", &settings.frames);
  settings.by_jobs = read_range("V3DREC_JOBS", &settings.jobs);
  read_number("V3DREC_LIMIT", 1 << 20, &limit_mib);
  read_number("V3DREC_PATIENCE", 1 << 20, &patience_ms);
  settings.limit = limit_mib << 20;
  settings.patience_ns = (int64_t)patience_ms * 1000000;
  settings.all_bos = read_choice("V3DREC_ALL_BOS");
  settings.only_hashes = read_choice("V3DREC_ONLY_HASHES");
  settings.masks = read_choice("V3DREC_MASK_TEXTURES");
  if (signal_name && *signal_name && settings.signal == 0)
    say("V3DREC_SIGNAL=%s is none of USR1, USR2, WINCH, HUP; nothing is recorded", signal_name);
}

/* -- the next library -------------------------------------------------------------------------------------
 */

typedef int ioctl_function(int, unsigned long, ...);
static ioctl_function* next_ioctl;
static int (*next_close)(int);
static int (*next_dup2)(int, int);
static int (*next_dup3)(int, int, int);
static int (*next_close_range)(unsigned, unsigned, int);

static void* find_next(const char* name) { return dlsym(RTLD_NEXT, name); }

static int call(int fd, unsigned direction, unsigned number, void* argument, size_t size) {
  const unsigned long request =
      (unsigned long)direction << 30 | (unsigned long)size << 16 | 'd' << 8 | number;
  int result;
  do result = next_ioctl(fd, request, argument);
  while (result < 0 && (errno == EINTR || errno == EAGAIN));
  return result;
}
enum { WRITE = 1, READ_WRITE = 3 };

/* Copies what the program points to, which need not be there. */
static bool get(void* to, uint64_t address, size_t size) {
  const struct iovec here = {to, size}, there = {(void*)(uintptr_t)address, size};
  if (size == 0) return true;
  if ((uintptr_t)address != address) return false;
  const ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  if (got < 0 && (errno == ENOSYS || errno == EPERM)) { /* emulators and sandboxes */
    memcpy(to, there.iov_base, size);
    return true;
  }
  return got == (ssize_t)size;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* -- open files and their buffer objects -------------------------------------------------------------------
 */

struct bo {
  int references;
  bool is_vc4, is_shader; /* a shader: made by VC4_CREATE_SHADER_BO */
  uint32_t handle, address, pages;
  uint32_t* numbers; /* of its pages in the capture; NULL: all zero */
};
struct target {
  uint32_t address, width, height, format, layout;
};
enum { MOST_TARGETS = 64, MOST_HANDLES = 1 << 20, MOST_FDS = 1 << 16, MOST_FILES = 256 };

/* What the kernel knows as one drm_file, whichever descriptors lead to it. */
/* Frames, as daemon/capture_window.cc counts them. */
struct frames {
  uint32_t current;
  bool drawn;
  uint32_t num_first;
  struct target first[MOST_TARGETS];
};

struct file {
  unsigned long long client; /* drm-client-id; 0: the kernel does not tell it */
  int descriptors;
  bool is_vc4;
  uint32_t end; /* of vc4, whose buffer objects have no addresses: where those end that it was given here */
  uint32_t context; /* of the capture; 0: none yet */
  bool maps_changed;
  uint32_t num_handles;
  struct bo** bos; /* by handle */
  struct frames frames;
};

static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER; /* protects all of this part */
static struct file* files[MOST_FILES];
static struct file foreign;          /* stands for files of other drivers */
static struct file* by_fd[MOST_FDS]; /* changed with the lock held */

static void release(struct bo* bo) {
  if (bo && --bo->references == 0) {
    free(bo->numbers);
    free(bo);
  }
}

static void free_file(struct file* file) {
  for (uint32_t i = 0; i < file->num_handles; ++i) release(file->bos[i]);
  free(file->bos);
  free(file);
}

static unsigned long long client_id(int fd) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
  const int info = open(path, O_RDONLY | O_CLOEXEC);
  if (info < 0) return 0;
  const ssize_t length = read(info, text, sizeof text - 1);
  next_close(info);
  if (length <= 0) return 0;
  text[length] = 0;
  const char* found = strstr(text, "drm-client-id:");
  return found ? strtoull(found + strlen("drm-client-id:"), NULL, 10) : 0;
}

/* @return the driver: 0 of v3d, 1 of vc4, -1 of none of them */
static int driver_of(int fd) {
  char name[16] = "";
  struct drm_version_arg version = {.name_len = sizeof name - 1, .name = name};
  if (call(fd, READ_WRITE, DRM_VERSION, &version, sizeof version) != 0) return -1;
  return strcmp(name, "v3d") == 0 ? 0 : strcmp(name, "vc4") == 0 ? 1 : -1;
}

/* A place for a new file: a free one, or that of a file that no known descriptor leads to. */
static struct file** place_for_file(void) {
  struct file** unused = NULL;
  for (int i = 0; i < MOST_FILES; ++i) {
    if (!files[i]) return &files[i];
    if (!unused && files[i]->descriptors == 0) unused = &files[i];
  }
  if (unused) {
    free_file(*unused);
    *unused = NULL;
  }
  return unused;
}

static struct file* identify(int fd) {
  const int driver = driver_of(fd);
  if (driver < 0) return &foreign;
  read_settings();
  const unsigned long long client = client_id(fd);
  for (int i = 0; client != 0 && i < MOST_FILES; ++i)
    if (files[i] && files[i]->client == client) return files[i];
  struct file** place = place_for_file();
  struct file* file = place ? calloc(1, sizeof *file) : NULL;
  if (!file) return &foreign;
  file->client = client;
  file->is_vc4 = driver == 1;
  file->maps_changed = true;
  return *place = file;
}

/* NULL: none whose jobs are looked at. */
static struct file* file_of(int fd) {
  if (fd < 0 || fd >= MOST_FDS) return NULL;
  if (!by_fd[fd]) {
    struct file* const file = identify(fd);
    ++file->descriptors;
    __atomic_store_n(&by_fd[fd], file, __ATOMIC_RELAXED);
  }
  return by_fd[fd] == &foreign ? NULL : by_fd[fd];
}

static bool is_known(unsigned fd) { return __atomic_load_n(&by_fd[fd], __ATOMIC_RELAXED) != NULL; }

/* Where none is known nothing is locked: signal handlers close descriptors, too, and one may have interrupted
 * the very thread that has the lock. */
static void forget_fds(unsigned first, unsigned last) {
  while (first <= last && first < MOST_FDS && !is_known(first)) ++first;
  if (first > last || first >= MOST_FDS) return;
  pthread_mutex_lock(&tables);
  for (unsigned fd = first; fd <= last && fd < MOST_FDS; ++fd) {
    if (!by_fd[fd]) continue;
    --by_fd[fd]->descriptors;
    __atomic_store_n(&by_fd[fd], NULL, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&tables);
}

static void remove_bo(struct file* file, uint32_t handle) {
  if (handle >= file->num_handles || !file->bos[handle]) return;
  release(file->bos[handle]);
  file->bos[handle] = NULL;
  file->maps_changed = true;
}

static int by_address(const void* a, const void* b) {
  const struct bo *x = *(struct bo*const*)a, *y = *(struct bo*const*)b;
  return x->address < y->address ? -1 : x->address > y->address;
}

/* The buffer objects of a file, by their addresses, whose owner the caller becomes. With `tables` held. NULL:
 * no memory. */
static struct bo** sorted_bos(const struct file* file, uint32_t* count) {
  struct bo** bos = calloc(file->num_handles + 1, sizeof *bos);
  *count = 0;
  for (uint32_t i = 0; bos && i < file->num_handles; ++i)
    if (file->bos[i]) bos[(*count)++] = file->bos[i];
  if (bos) qsort(bos, *count, sizeof *bos, by_address);
  return bos;
}

/* Addresses that vc4's buffer objects have in a capture. Beyond lies what is made of submissions when it is
 * read. */
enum { FIRST_PLACE = 1 << 16, LAST_PLACE = 1 << 30 };

/* Room for a buffer object of vc4. @return its address; 0: there is none */
static uint32_t place_for_bo(struct file* file, uint32_t pages) {
  const uint64_t bytes = (uint64_t)pages * PAGE;
  uint32_t count, at = file->end ? file->end : FIRST_PLACE;
  if (at + bytes <= LAST_PLACE) {
    file->end = at + (uint32_t)bytes;
    return at;
  }
  struct bo** bos = sorted_bos(file, &count);
  if (!bos) return 0;
  at = FIRST_PLACE;
  for (uint32_t i = 0; i < count && at + bytes > bos[i]->address; ++i)
    at = bos[i]->address + bos[i]->pages * PAGE;
  free(bos);
  if (at + bytes > LAST_PLACE) return 0;
  if (at + bytes > file->end) file->end = at + (uint32_t)bytes;
  return at;
}

static bool make_room_for_handle(struct file* file, uint32_t handle) {
  if (handle < file->num_handles) return true;
  const uint32_t count = handle + 64;
  struct bo** grown = realloc(file->bos, count * sizeof *grown);
  if (!grown) return false;
  memset(grown + file->num_handles, 0, (count - file->num_handles) * sizeof *grown);
  file->bos = grown;
  file->num_handles = count;
  return true;
}

/* @param address  of vc4, where none has one: any. @return NULL: none, or one that is known is imported again
 */
static struct bo* add_bo(struct file* file, uint32_t handle, uint32_t address, uint64_t bytes) {
  if (handle >= MOST_HANDLES || bytes == 0 || bytes > UINT32_MAX) return NULL;
  if (!make_room_for_handle(file, handle)) return NULL;
  const uint32_t pages = (uint32_t)((bytes + PAGE - 1) / PAGE);
  struct bo* known = file->bos[handle];
  if (known && (file->is_vc4 || known->address == address) && known->pages == pages) return NULL;
  remove_bo(file, handle);
  if (file->is_vc4 && (address = place_for_bo(file, pages)) == 0) return NULL;
  struct bo* bo = calloc(1, sizeof *bo);
  if (!bo) return NULL;
  *bo = (struct bo){
      .references = 1, .is_vc4 = file->is_vc4, .handle = handle, .address = address, .pages = pages};
  file->maps_changed = true;
  return file->bos[handle] = bo;
}

/* One whose address and perhaps size the call did not say. */
static void add_foreign_bo(int fd, struct file* file, uint32_t handle, uint64_t bytes) {
  struct v3d_get_bo_offset where = {.handle = handle};
  if (file->is_vc4 || call(fd, READ_WRITE, V3D_GET_BO_OFFSET, &where, sizeof where) == 0)
    add_bo(file, handle, where.offset, bytes);
}

/* Those that both drivers make alike. */
static void follow_any(int fd, struct file* file, unsigned number, const void* argument) {
  if (number == GEM_OPEN) {
    const struct gem_open* opened = argument;
    add_foreign_bo(fd, file, opened->handle, opened->size);
  } else if (number == PRIME_FD_TO_HANDLE) {
    const struct prime_handle* imported = argument;
    const off_t bytes = lseek(imported->fd, 0, SEEK_END);
    lseek(imported->fd, 0, SEEK_SET);
    if (bytes > 0) add_foreign_bo(fd, file, imported->handle, (uint64_t)bytes);
  }
}

static void add_vc4_bo(struct file* file, uint32_t handle, uint64_t bytes, bool is_shader) {
  remove_bo(file, handle); /* of which it was not seen that it was closed */
  struct bo* const bo = add_bo(file, handle, 0, bytes);
  if (bo) bo->is_shader = is_shader;
}

static void follow_vc4(struct file* file, unsigned number, const void* argument) {
  if (number == VC4_CREATE_BO) {
    const struct vc4_create_bo* made = argument;
    add_vc4_bo(file, made->handle, made->size, false);
  } else if (number == VC4_CREATE_SHADER_BO) {
    const struct vc4_create_shader_bo* made = argument;
    add_vc4_bo(file, made->handle, made->size, true);
  } else if (number == CREATE_DUMB) {
    const struct create_dumb* made = argument;
    add_vc4_bo(file, made->handle, made->size, false);
  }
}

/* Keeps in mind what a call that went well did to the buffer objects. */
static void follow(int fd, unsigned number, const void* argument) {
  pthread_mutex_lock(&tables);
  struct file* file = file_of(fd);
  if (file) follow_any(fd, file, number, argument);
  if (file && file->is_vc4) {
    follow_vc4(file, number, argument);
  } else if (file && number == V3D_CREATE_BO) {
    const struct v3d_create_bo* made = argument;
    add_bo(file, made->handle, made->offset, made->size);
  }
  pthread_mutex_unlock(&tables);
}

/* GEM_CLOSE or DESTROY_DUMB, with the lock held: once the kernel has closed a BO, another thread's next one
 * has its handle and address.
 */
static int close_bo(ioctl_function* next, int fd, unsigned long request, void* argument) {
  pthread_mutex_lock(&tables);
  struct file* file = file_of(fd);
  const int result = next(fd, request, argument), error = errno;
  if (result == 0 && file) remove_bo(file, ((const struct gem_close*)argument)->handle);
  pthread_mutex_unlock(&tables);
  errno = error;
  return result;
}

/* -- the capture -------------------------------------------------------------------------------------------
 */

static pthread_mutex_t submits = PTHREAD_MUTEX_INITIALIZER; /* taken before `tables`; protects all below */

static struct {
  int fd; /* -1: not begun */
  bool stopped, is_vc4;
  dev_t device;
  ino_t inode;
  char path[PATH_MAX];
  uint64_t end;   /* what is written, without the end record */
  uint64_t whole; /* as much of that as an end record followed, and the jobs that it counted */
  uint32_t whole_jobs;
  uint32_t jobs, contexts, submission;
  size_t buffered;
  uint8_t buffer[1 << 16];
} out = {.fd = -1};
static uint32_t submission_number; /* of the process, from 1 */

/* Pages that are not in the file yet. */
static struct {
  uint32_t count;
  uint8_t pages[MOST_PAGES_IN_CHUNK * PAGE], compressed[MOST_PAGES_IN_CHUNK * PAGE];
} chunk;

/* Of libzstd, where there is one. */
static struct {
  size_t (*compress)(void* to, size_t room, const void* from, size_t bytes, int level);
  unsigned (*is_error)(size_t result);
} zstd;
enum { ZSTD_LEVEL = 1 };

/* Pages that the file has, by what is in them: as many as its limit allows. */
struct page_key {
  uint64_t low, high;
  uint32_t number; /* 0: the place is free */
};
static struct {
  struct page_key* places;
  uint32_t room, count; /* room: a power of two */
} known;

static bool is_still_open(void) {
  struct stat info;
  return out.fd >= 0 && fstat(out.fd, &info) == 0 && info.st_dev == out.device && info.st_ino == out.inode;
}

/* The file ends where it was whole. */
static void stop(const char* why) {
  if (!out.stopped) say("the recording %s stops after job %u: %s", out.path, out.whole_jobs, why);
  out.stopped = true;
  out.buffered = 0;
  chunk.count = 0;
  const uint32_t end[3] = {RECORD_END, sizeof out.whole_jobs, out.whole_jobs};
  if (out.whole && is_still_open() &&
      pwrite(out.fd, end, sizeof end, (off_t)out.whole) == (ssize_t)sizeof end) {
    const int cut = ftruncate(out.fd, (off_t)(out.whole + sizeof end));
    (void)cut;
  }
  free(known.places);
  memset(&known, 0, sizeof known);
}

static void flush(void) {
  if (out.end + out.buffered > settings.limit) stop("it has the size that V3DREC_LIMIT allows");
  for (size_t done = 0; done < out.buffered && !out.stopped;) {
    const ssize_t wrote = pwrite(out.fd, out.buffer + done, out.buffered - done, (off_t)(out.end + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return stop(wrote < 0 ? strerror(errno) : "nothing is written");
    done += (size_t)wrote;
  }
  out.end += out.buffered;
  out.buffered = 0;
}

static void put(const void* data, size_t bytes) {
  while (bytes > 0 && !out.stopped) {
    const size_t room = sizeof out.buffer - out.buffered, part = bytes < room ? bytes : room;
    memcpy(out.buffer + out.buffered, data, part);
    out.buffered += part;
    data = (const uint8_t*)data + part;
    bytes -= part;
    if (out.buffered == sizeof out.buffer) flush();
  }
}

static void put_plain_head(uint32_t type, size_t bytes) {
  const uint32_t head[2] = {type, (uint32_t)bytes};
  put(head, sizeof head);
}

/* As the process begins, when no thread waits for another one in the loader. */
static void look_for_zstd(void) {
  const char* const choice = getenv("V3DREC_COMPRESS");
  if (choice && strcmp(choice, "0") == 0) return;
  void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library) zstd.is_error = (unsigned (*)(size_t))dlsym(library, "ZSTD_isError");
  if (zstd.is_error)
    zstd.compress = (size_t(*)(void*, size_t, const void*, size_t, int))dlsym(library, "ZSTD_compress");
  dlerror(); /* the program's next one is about its own calls */
}

/* Writes the pages that are not in the file, compressed where that makes them smaller. */
static void put_chunk(void) {
  const uint32_t count = chunk.count;
  if (count == 0) return;
  chunk.count = 0;
  const size_t bytes = (size_t)count * PAGE;
  const size_t small =
      zstd.compress ? zstd.compress(chunk.compressed, bytes - 1, chunk.pages, bytes, ZSTD_LEVEL) : 0;
  if (zstd.compress && !zstd.is_error(small)) {
    put_plain_head(RECORD_CHUNK, sizeof count + small);
    put(&count, sizeof count);
    put(chunk.compressed, small);
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    put_plain_head(RECORD_PAGE, PAGE);
    put(chunk.pages + (size_t)i * PAGE, PAGE);
  }
}

/* Of a record that may name pages: these stand before it. */
static void put_head(uint32_t type, size_t bytes) {
  put_chunk();
  put_plain_head(type, bytes);
}

/* The end record follows what is written, until more is written: the file is whole after every job. */
static void put_end(void) {
  flush();
  const uint32_t end[3] = {RECORD_END, sizeof out.jobs, out.jobs};
  if (out.stopped) return;
  if (pwrite(out.fd, end, sizeof end, (off_t)out.end) != (ssize_t)sizeof end ||
      ftruncate(out.fd, (off_t)(out.end + sizeof end)) != 0)
    return stop(strerror(errno));
  out.whole = out.end;
  out.whole_jobs = out.jobs;
}

/* Whether the board has that name, of several, in its device tree. */
static bool is_compatible(const char* names, size_t bytes, const char* name) {
  for (size_t at = 0; at < bytes; at += strlen(names + at) + 1)
    if (strncmp(names + at, name, strlen(name)) == 0) return true;
  return false;
}

/* The same of vc4, whose chips all have one number. */
static const char* profile_of_vc4(int fd) {
  struct v3d_get_param idents[2] = {{.param = VC4_PARAM_IDENT0}, {.param = VC4_PARAM_IDENT1}};
  for (int i = 0; i < 2; ++i)
    if (call(fd, READ_WRITE, VC4_GET_PARAM, &idents[i], sizeof idents[i]) != 0) return NULL;
  if ((idents[0].value >> 24 & 255) != 2 || (idents[1].value & 15) != 1) return NULL;
  char names[256] = "";
  const int tree = open("/proc/device-tree/compatible", O_RDONLY | O_CLOEXEC);
  const ssize_t got = tree < 0 ? 0 : read(tree, names, sizeof names - 1);
  if (tree >= 0) next_close(tree);
  const size_t bytes = got > 0 ? (size_t)got : 0;
  if (is_compatible(names, bytes, "brcm,bcm2836")) return "rpi2";
  if (!is_compatible(names, bytes, "brcm,bcm2835")) return "rpi3";
  return is_compatible(names, bytes, "raspberrypi,model-zero") ? "rpi0" : "rpi1";
}

/* Which of v3demu's devices the chip is. NULL: none. */
static const char* profile_of(int fd, bool is_vc4) {
  if (is_vc4) return profile_of_vc4(fd);
  uint64_t values[3] = {0};
  const uint32_t params[3] = {PARAM_CORE0_IDENT0, PARAM_CORE0_IDENT1, PARAM_HUB_IDENT3};
  for (int i = 0; i < 3; ++i) {
    struct v3d_get_param param = {.param = params[i]};
    if (call(fd, READ_WRITE, V3D_GET_PARAM, &param, sizeof param) != 0) return NULL;
    values[i] = param.value;
  }
  const unsigned version = (unsigned)(values[0] >> 24 & 255) * 10 + (values[1] & 15);
  const unsigned slices = values[1] >> 4 & 15, revision = values[2] >> 8 & 255;
  if (version == 42) return "rpi4";
  if (version != 71) return NULL;
  if (slices == 4) return "rpi5-16";
  return revision >= 10 ? "rpi5-d0" : revision == 5 ? "rpi5-7.1.5" : "rpi5";
}

/* The name of the file, with the number of the process for %p; a number follows where one exists. */
static int create_file(void) {
  char name[PATH_MAX - 16];
  const char* percent = strstr(settings.file, "%p");
  if (percent)
    snprintf(name, sizeof name, "%.*s%d%s", (int)(percent - settings.file), settings.file, (int)getpid(),
             percent + 2);
  else
    snprintf(name, sizeof name, "%s", settings.file);
  for (int i = 1; i < 1000; ++i) {
    if (i == 1)
      snprintf(out.path, sizeof out.path, "%s", name);
    else
      snprintf(out.path, sizeof out.path, "%s.%d", name, i);
    const int fd = open(out.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/* Programs close descriptors that they do not know, and take their numbers for others. */
static bool open_again(void) {
  out.fd = open(out.path, O_RDWR | O_CLOEXEC);
  if (is_still_open()) return true;
  out.fd = -1;
  stop("the file is gone");
  return false;
}

static bool begin_capture(int fd, bool is_vc4) {
  if (out.stopped) return false;
  if (out.fd >= 0 && out.is_vc4 != is_vc4) {
    say("the recording %s is of another driver's GPU: a submission is not recorded", out.path);
    return false;
  }
  if (out.fd >= 0) return is_still_open() || open_again();
  struct capture_header header = {.magic = "V3DCAP", .format = CAPTURE_FORMAT};
  const char* profile = profile_of(fd, is_vc4);
  if (!profile) {
    stop("this is no V3D 2.1, 4.2 or 7.1");
    return false;
  }
  strncpy(header.profile, profile, sizeof header.profile - 1);
  out.is_vc4 = is_vc4;
  out.fd = create_file();
  if (out.fd < 0) {
    stop(strerror(errno));
    return false;
  }
  struct stat info;
  if (fstat(out.fd, &info) == 0) {
    out.device = info.st_dev;
    out.inode = info.st_ino;
  }
  put(&header, sizeof header);
  put_end();
  if (!out.stopped) say("records into %s", out.path);
  return !out.stopped;
}

static bool grow_known(void) {
  const uint32_t room = known.room ? 2 * known.room : 1024;
  struct page_key* places = calloc(room, sizeof *places);
  if (!places) return false;
  for (uint32_t i = 0; i < known.room; ++i) {
    if (!known.places[i].number) continue;
    uint32_t at = (uint32_t)known.places[i].low & (room - 1);
    while (places[at].number) at = (at + 1) & (room - 1);
    places[at] = known.places[i];
  }
  free(known.places);
  known.places = places;
  known.room = room;
  return true;
}

static struct page_key key_of(const uint64_t* words) {
  struct page_key key = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xc2b2ae3d27d4eb4f), 0};
  for (int i = 0; i < PAGE / 8; ++i) {
    key.low = (key.low ^ words[i]) * UINT64_C(0xff51afd7ed558ccd);
    key.low ^= key.low >> 29;
    key.high = (key.high + words[i]) * UINT64_C(0xc4ceb9fe1a85ec53);
    key.high ^= key.high >> 31;
  }
  return key;
}

static bool is_zero(const uint64_t* words) {
  uint64_t any = 0;
  for (int i = 0; i < PAGE / 8; ++i) any |= words[i];
  return any == 0;
}

/* Where the page stands, or would. There is room for one. */
static struct page_key* find_page(const struct page_key* key) {
  uint32_t at = (uint32_t)key->low & (known.room - 1);
  while (known.places[at].number && (known.places[at].low != key->low || known.places[at].high != key->high))
    at = (at + 1) & (known.room - 1);
  return &known.places[at];
}

/* The number of a page with these contents, which is written if it is new. */
static uint32_t page_number(const uint64_t* words) {
  if (is_zero(words) || out.stopped) return 0;
  if (4 * (uint64_t)known.count >= 3 * (uint64_t)known.room && !grow_known()) {
    stop("no memory");
    return 0;
  }
  const struct page_key key = key_of(words);
  struct page_key* const place = find_page(&key);
  if (place->number) return place->number;
  const uint32_t number = ++known.count;
  *place = (struct page_key){key.low, key.high, number};
  memcpy(chunk.pages + (size_t)chunk.count * PAGE, words, PAGE);
  if (++chunk.count == MOST_PAGES_IN_CHUNK) put_chunk(); /* which may stop, and free the places */
  return number;
}

/* Whether the page of that number has these contents. */
static bool has_page(const uint64_t* words, uint32_t number) {
  if (number == 0 || is_zero(words)) return number == 0 && is_zero(words);
  const struct page_key key = key_of(words);
  return known.room > 0 && find_page(&key)->number == number;
}

/* -- memory of a submission --------------------------------------------------------------------------------
 */

/* Words that become a record. */
struct words {
  uint32_t* words;
  size_t count, room;
};

static void add_word(struct words* to, uint32_t word) {
  if (to->count == to->room) {
    const size_t room = to->room ? 2 * to->room : 512;
    uint32_t* grown = realloc(to->words, room * sizeof *grown);
    if (!grown) return stop("no memory");
    to->words = grown;
    to->room = room;
  }
  to->words[to->count++] = word;
}

static void add_pair(struct words* to, uint32_t a, uint32_t b) {
  add_word(to, a);
  add_word(to, b);
}

/* Takes the BOs of a list that are known, and each once. @return how many */
static uint32_t take_bos(struct file* file, const uint32_t* handles, uint32_t count, struct bo** bos) {
  uint32_t taken = 0;
  pthread_mutex_lock(&tables);
  for (uint32_t i = 0; i < count; ++i) {
    struct bo* bo = handles[i] < file->num_handles ? file->bos[handles[i]] : NULL;
    if (!bo) continue;
    ++bo->references;
    bos[taken++] = bo;
  }
  pthread_mutex_unlock(&tables);
  return taken;
}

static void give_back(struct bo** bos, uint32_t count) {
  pthread_mutex_lock(&tables);
  for (uint32_t i = 0; i < count; ++i) release(bos[i]);
  pthread_mutex_unlock(&tables);
  free(bos);
}

/* All of a file, by their addresses. NULL: no memory. */
static struct bo** all_bos(struct file* file, uint32_t* count) {
  pthread_mutex_lock(&tables);
  struct bo** bos = sorted_bos(file, count);
  for (uint32_t i = 0; i < *count; ++i) ++bos[i]->references;
  pthread_mutex_unlock(&tables);
  return bos;
}

/* A BO's memory to read. NULL: it cannot be mapped. */
static const uint8_t* map_bo(int fd, const struct bo* bo) {
  struct v3d_mmap_bo where = {.handle = bo->handle}; /* vc4's is the same */
  const unsigned number = bo->is_vc4 ? VC4_MMAP_BO : V3D_MMAP_BO;
  if (call(fd, READ_WRITE, number, &where, sizeof where) != 0) return NULL;
  void* mapped = mmap64(NULL, (size_t)bo->pages * PAGE, PROT_READ, MAP_SHARED, fd, (off64_t)where.offset);
  return mapped == MAP_FAILED ? NULL : mapped;
}

/* The maps of a file where they changed. What is newly mapped is zero for the reader, so pages that are in
 * the capture are named again. */
static void write_maps(struct file* file, struct words* sets) {
  uint32_t count;
  pthread_mutex_lock(&tables);
  const bool changed = file->maps_changed;
  file->maps_changed = false;
  pthread_mutex_unlock(&tables);
  if (!changed) return;
  struct bo** bos = all_bos(file, &count);
  if (!bos) return stop("no memory");
  put_head(RECORD_MAPS, 4 + (size_t)count * 8);
  put(&file->context, 4);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t range[2] = {bos[i]->address, bos[i]->pages};
    put(range, sizeof range);
    for (uint32_t page = 0; bos[i]->numbers && page < bos[i]->pages; ++page)
      if (bos[i]->numbers[page]) add_pair(sets, bos[i]->address + page * PAGE, bos[i]->numbers[page]);
  }
  give_back(bos, count);
}

/* Words that the kernel writes on behalf of a job, between what the program left and what the GPU finds. */
struct written_word {
  uint32_t address, value;
};
struct written {
  uint32_t count;
  struct written_word words[3];
};

static void apply(const struct written* written, uint32_t address, uint64_t* page) {
  for (uint32_t i = 0; written && i < written->count; ++i) {
    const uint32_t at = written->words[i].address - address;
    if (at < PAGE) memcpy((uint8_t*)page + at, &written->words[i].value, 4);
  }
}

/* Memory that is recorded where textures are masked: ranges of addresses, ascending once they are sorted. */
struct kept {
  bool is_all;
  size_t count, room;
  struct kept_range {
    uint64_t from, to;
  } * ranges;
};

static bool keep(struct kept* kept, uint64_t from, uint64_t to) {
  if (kept->count == kept->room) {
    const size_t room = kept->room ? 2 * kept->room : 256;
    struct kept_range* grown = realloc(kept->ranges, room * sizeof *grown);
    if (!grown) return false;
    kept->ranges = grown;
    kept->room = room;
  }
  kept->ranges[kept->count++] = (struct kept_range){from, to};
  return true;
}

static int by_begin(const void* a, const void* b) {
  const struct kept_range *x = a, *y = b;
  return x->from < y->from ? -1 : x->from > y->from;
}

/* Sorts the ranges and joins those that meet. */
static void sort_kept(struct kept* kept) {
  size_t last = 0;
  if (kept->count == 0) return;
  qsort(kept->ranges, kept->count, sizeof kept->ranges[0], by_begin);
  for (size_t i = 1; i < kept->count; ++i) {
    struct kept_range* const before = &kept->ranges[last];
    const struct kept_range* const next = &kept->ranges[i];
    if (next->from > before->to)
      kept->ranges[++last] = *next;
    else if (next->to > before->to)
      before->to = next->to;
  }
  kept->count = last + 1;
}

/* Clears all of a page that is not kept. */
static void mask(const struct kept* kept, uint64_t address, uint64_t* page) {
  uint64_t left[PAGE / 8] = {0};
  size_t first = 0, end = kept->count;
  while (first < end) {
    const size_t middle = (first + end) / 2;
    if (kept->ranges[middle].to <= address)
      first = middle + 1;
    else
      end = middle;
  }
  for (; first < kept->count && kept->ranges[first].from < address + PAGE; ++first) {
    const struct kept_range* range = &kept->ranges[first];
    const uint64_t from = range->from > address ? range->from - address : 0;
    const uint64_t to = range->to < address + PAGE ? range->to - address : PAGE;
    memcpy((uint8_t*)left + from, (const uint8_t*)page + from, (size_t)(to - from));
  }
  memcpy(page, left, PAGE);
}

/* Finds the pages of a BO that are not as the capture has them. @param written  comes on top of what stands
 * there; NULL: nothing @param kept  NULL: all @param keeps  they become so @return false: it cannot be read
 */
static bool find_changes(int fd, struct bo* bo, const struct written* written, const struct kept* kept,
                         bool keeps, struct words* changes) {
  const uint8_t* memory = map_bo(fd, bo);
  if (memory && !bo->numbers) bo->numbers = calloc(bo->pages, sizeof *bo->numbers);
  for (uint32_t page = 0; memory && bo->numbers && page < bo->pages && !out.stopped; ++page) {
    uint64_t copy[PAGE / 8];
    memcpy(copy, memory + (size_t)page * PAGE, PAGE);
    apply(written, bo->address + page * PAGE, copy);
    if (kept && !kept->is_all) mask(kept, bo->address + (uint64_t)page * PAGE, copy);
    const uint32_t number = page_number(copy);
    if (number == bo->numbers[page]) continue;
    add_pair(changes, bo->address + page * PAGE, number);
    if (keeps) bo->numbers[page] = number;
  }
  if (memory) munmap((void*)(uintptr_t)memory, (size_t)bo->pages * PAGE);
  return memory && bo->numbers;
}

/* What the jobs of a submission find. */
static void write_before(int fd, struct file* file, struct bo** bos, uint32_t count,
                         const struct written* written, const struct kept* kept) {
  struct words sets = {0};
  if (file->context == 0) {
    if (out.contexts == MOST_CONTEXTS) return stop("more files were opened than a capture may have");
    file->context = ++out.contexts;
  }
  write_maps(file, &sets);
  for (uint32_t i = 0; i < count; ++i)
    if (!find_changes(fd, bos[i], written, kept, true, &sets))
      say("buffer object %u cannot be read", bos[i]->handle);
  if (sets.count > 0) {
    put_head(RECORD_SETS, 4 + 4 * sets.count);
    put(&file->context, 4);
    put(sets.words, 4 * sets.count);
  }
  free(sets.words);
}

static bool contains(const struct bo* bo, uint32_t address) {
  return address >= bo->address && address - bo->address < (uint64_t)bo->pages * PAGE;
}

/* Finds pages of a BO that are not as the capture has them, and tells no more of them than half of the key of
 * their contents: 8 bytes cannot hold 4096. @return false: it cannot be read */
static bool find_hashes(int fd, const struct bo* bo, struct words* changes) {
  const uint8_t* memory = map_bo(fd, bo);
  for (uint32_t page = 0; memory && bo->numbers && page < bo->pages && !out.stopped; ++page) {
    uint64_t copy[PAGE / 8];
    memcpy(copy, memory + (size_t)page * PAGE, PAGE);
    if (has_page(copy, bo->numbers[page])) continue;
    const uint64_t hash = key_of(copy).low;
    add_pair(changes, bo->address + page * PAGE, (uint32_t)hash);
    add_word(changes, (uint32_t)(hash >> 32));
  }
  if (memory) munmap((void*)(uintptr_t)memory, (size_t)bo->pages * PAGE);
  return memory && bo->numbers;
}

/* What they left. @param binner  two addresses: what lies in BOs of these is the GPU's own, lists of tiles
 * whose form nobody knows; 0: none */
static void write_after(int fd, struct file* file, struct bo** bos, uint32_t count,
                        const uint32_t binner[2]) {
  struct words ranges = {0}, changes = {0};
  qsort(bos, count, sizeof *bos, by_address);
  for (uint32_t i = 0; i < count; ++i) {
    const bool own = (binner[0] && contains(bos[i], binner[0])) || (binner[1] && contains(bos[i], binner[1]));
    if (own || (i > 0 && bos[i] == bos[i - 1])) continue;
    const bool good = settings.only_hashes ? find_hashes(fd, bos[i], &changes)
                                           : find_changes(fd, bos[i], NULL, NULL, false, &changes);
    if (good) add_pair(&ranges, bos[i]->address, bos[i]->pages);
  }
  const uint32_t head[2] = {file->context, (uint32_t)(ranges.count / 2)};
  put_head(settings.only_hashes ? RECORD_AFTER_HASHES : RECORD_AFTER,
           sizeof head + 4 * (ranges.count + changes.count));
  put(head, sizeof head);
  put(ranges.words, 4 * ranges.count);
  put(changes.words, 4 * changes.count);
  free(ranges.words);
  free(changes.words);
}

/* -- submissions -------------------------------------------------------------------------------------------
 */

struct submission {
  uint32_t num_handles, num_syncs;
  uint32_t *handles, *syncs; /* buffer objects, and what the jobs wait for */
  uint32_t lists[2];         /* rendering list: start and end; of those that draw */
  uint32_t binner[2];
  uint32_t num_jobs;
  struct job_record jobs[2];
  bool is_indirect; /* workgroups are known once all that it waits for has ended */
  struct v3d_indirect_csd indirect;
  uint32_t counts_handle;
  struct written written;
  bool is_vc4;
  struct vc4_submit_cl vc4;
  uint8_t* vc4_bytes; /* its list, records and uniforms, each up to a multiple of 4 */
  struct kept kept;
};
/* What v3demu takes of a submission of vc4, as the kernel has no other bound than its memory. */
enum { MOST_VC4_BYTES = 64 << 20 };
enum { MOST_LIST = 1 << 16, MOST_SYNCS = 1024, MOST_EXTENSIONS = 64 };

/* Adds those of a list. */
static bool take_handles(struct submission* s, uint64_t address, uint32_t count) {
  if (count > MOST_LIST) return false;
  uint32_t* grown = realloc(s->handles, (s->num_handles + count + 1) * sizeof *grown);
  if (!grown) return false;
  s->handles = grown;
  if (!get(grown + s->num_handles, address, count * sizeof *grown)) return false;
  s->num_handles += count;
  return true;
}

static void add_sync(struct submission* s, uint32_t handle) {
  if (handle && s->syncs && s->num_syncs < MOST_SYNCS) s->syncs[s->num_syncs++] = handle;
}

static void take_extensions(struct submission* s, uint64_t address) {
  struct v3d_extension extension;
  for (int i = 0; address && i < MOST_EXTENSIONS && get(&extension, address, sizeof extension); ++i) {
    struct v3d_multi_sync syncs;
    if (extension.id == EXTENSION_MULTI_SYNC && get(&syncs, address, sizeof syncs))
      for (uint32_t n = 0; n < syncs.in_sync_count && n < MOST_SYNCS; ++n) {
        struct v3d_sem sem;
        if (!get(&sem, syncs.in_syncs + n * sizeof sem, sizeof sem)) break;
        add_sync(s, sem.handle);
      }
    if (extension.id == EXTENSION_INDIRECT_CSD && get(&s->indirect, address, sizeof s->indirect))
      s->is_indirect = true;
    address = extension.next;
  }
}

static bool take_cl(struct submission* s, const struct v3d_submit_cl* args) {
  add_sync(s, args->in_sync_bcl);
  add_sync(s, args->in_sync_rcl);
  if (args->flags & SUBMIT_EXTENSION) take_extensions(s, args->extensions);
  s->lists[0] = args->rcl_start;
  s->lists[1] = args->rcl_end;
  const struct job_record job = {.kind = JOB_BIN,
                                 .words = {args->bcl_start, args->bcl_end, args->rcl_start, args->rcl_end,
                                           args->qma, args->qms, args->qts}};
  if (args->bcl_start != args->bcl_end) {
    s->binner[0] = args->qma;
    s->binner[1] = args->qts;
    s->jobs[s->num_jobs++] = job;
  }
  s->jobs[s->num_jobs] = job;
  s->jobs[s->num_jobs++].kind = JOB_RENDER;
  return take_handles(s, args->bo_handles, args->bo_handle_count);
}

static bool take_csd(struct submission* s, const struct v3d_submit_csd* args, size_t size) {
  add_sync(s, args->in_sync);
  if (size >= sizeof *args && args->flags & SUBMIT_EXTENSION) take_extensions(s, args->extensions);
  s->jobs[0].kind = JOB_CSD;
  memcpy(s->jobs[0].words, args->cfg, sizeof args->cfg);
  s->num_jobs = args->cfg[0] >> 16 && args->cfg[1] >> 16 && args->cfg[2] >> 16; /* the kernel skips others */
  return take_handles(s, args->bo_handles, args->bo_handle_count);
}

/* A dispatch whose workgroups a buffer object says, or queries: these the kernel does alone, and what they
 * write the next job finds. */
static bool take_cpu(struct submission* s, const struct v3d_submit_cpu* args) {
  if (args->flags & SUBMIT_EXTENSION) take_extensions(s, args->extensions);
  if (!s->is_indirect) return false;
  const struct v3d_submit_csd* csd = &s->indirect.submit;
  if (args->bo_handle_count != 1 || !take_handles(s, args->bo_handles, 1)) return false;
  s->counts_handle = s->handles[0];
  if (!take_handles(s, (uintptr_t)&s->indirect.indirect, 1)) return false;
  add_sync(s, csd->in_sync);
  s->jobs[0].kind = JOB_CSD;
  memcpy(s->jobs[0].words, csd->cfg, sizeof csd->cfg);
  s->jobs[0].words[7] = 1;
  s->num_jobs = 1;
  return take_handles(s, csd->bo_handles, csd->bo_handle_count);
}

static bool take_tfu(struct submission* s, const struct v3d_submit_tfu* args, size_t size) {
  add_sync(s, args->in_sync);
  const bool has_more = size >= sizeof *args;
  if (has_more && args->flags & SUBMIT_EXTENSION) take_extensions(s, args->extensions);
  s->jobs[0] = (struct job_record){
      .kind = JOB_TFU,
      .words = {args->icfg, args->iia, args->iis, args->ica, args->iua, args->ioa, args->ios,
                has_more ? args->ioc : 0, args->coef[0], args->coef[1], args->coef[2], args->coef[3]}};
  s->num_jobs = 1;
  uint32_t count = 0;
  while (count < 4 && args->bo_handles[count]) ++count;
  return take_handles(s, (uintptr_t)args->bo_handles, count);
}

static uint64_t whole_words(uint32_t bytes) { return ((uint64_t)bytes + 3) & ~(uint64_t)3; }

static uint64_t vc4_bytes(const struct vc4_submit_cl* args) {
  return whole_words(args->bin_cl_size) + whole_words(args->shader_rec_size) +
         whole_words(args->uniforms_size);
}

/* Nothing of it says where it is in memory: lists and records name buffer objects by their places in the list
 * of handles. */
static bool take_vc4(struct submission* s, const struct vc4_submit_cl* args) {
  add_sync(s, args->in_sync);
  s->is_vc4 = true;
  s->vc4 = *args;
  s->vc4.bin_cl = s->vc4.shader_rec = s->vc4.uniforms = s->vc4.bo_handles = s->vc4.seqno = 0;
  s->vc4.perfmonid = s->vc4.in_sync = s->vc4.out_sync = 0;
  memset(s->vc4.pad, 0, sizeof s->vc4.pad);
  if (args->bin_cl_size == 0)
    s->vc4.shader_rec_size = s->vc4.uniforms_size = 0; /* the kernel does not look */
  const uint64_t bytes = vc4_bytes(&s->vc4);
  if (bytes > MOST_VC4_BYTES || !(s->vc4_bytes = calloc(1, (size_t)bytes + 1))) return false;
  uint8_t* const records = s->vc4_bytes + whole_words(s->vc4.bin_cl_size);
  uint8_t* const uniforms = records + whole_words(s->vc4.shader_rec_size);
  if (!get(s->vc4_bytes, args->bin_cl, s->vc4.bin_cl_size) ||
      !get(records, args->shader_rec, s->vc4.shader_rec_size) ||
      !get(uniforms, args->uniforms, s->vc4.uniforms_size))
    return false;
  if (args->bin_cl_size != 0) s->jobs[s->num_jobs++].kind = JOB_BIN;
  s->jobs[s->num_jobs++].kind = JOB_RENDER;
  return take_handles(s, args->bo_handles, args->bo_handle_count);
}

/* False: it is none that can be recorded. */
static bool take_submission(struct submission* s, bool is_vc4, unsigned number, const void* argument,
                            size_t size) {
  union {
    struct vc4_submit_cl vc4;
    struct v3d_submit_cl cl;
    struct v3d_submit_csd csd;
    struct v3d_submit_tfu tfu;
    struct v3d_submit_cpu cpu;
  } args;
  memset(&args, 0, sizeof args);
  if (!get(&args, (uintptr_t)argument, size < sizeof args ? size : sizeof args)) return false;
  s->syncs = calloc(MOST_SYNCS, sizeof *s->syncs);
  if (is_vc4) return take_vc4(s, &args.vc4);
  if (number == V3D_SUBMIT_CL) return take_cl(s, &args.cl);
  if (number == V3D_SUBMIT_CSD) return take_csd(s, &args.csd, size);
  if (number == V3D_SUBMIT_CPU) return take_cpu(s, &args.cpu);
  return take_tfu(s, &args.tfu, size);
}

/* -- frames ------------------------------------------------------------------------------------------------
 */

/* Reads GPU memory of the BOs of a submission, one of which it keeps mapped. */
struct reader {
  int fd;
  struct bo** bos;
  uint32_t count;
  const struct bo* mapped;
  const uint8_t* memory;
};

static void close_reader(struct reader* r) {
  if (r->memory) munmap((void*)(uintptr_t)r->memory, (size_t)r->mapped->pages * PAGE);
  r->memory = NULL;
  r->mapped = NULL;
}

static bool read_gpu(struct reader* r, uint32_t address, uint8_t* to, uint32_t bytes) {
  for (uint32_t i = 0; !(r->mapped && contains(r->mapped, address)); ++i) {
    if (i == r->count) return false;
    if (!contains(r->bos[i], address)) continue;
    close_reader(r);
    r->memory = map_bo(r->fd, r->bos[i]);
    if (!r->memory) return false;
    r->mapped = r->bos[i];
  }
  const uint64_t at = address - r->mapped->address;
  if (at + bytes > (uint64_t)r->mapped->pages * PAGE) return false;
  memcpy(to, r->memory + at, bytes);
  return true;
}

/* The packet at *address, which then is that of the next one. False: none that is known. */
static bool next_packet(struct reader* r, uint32_t* address, bool is_42, uint8_t packet[16]) {
  if (!read_gpu(r, *address, packet, 1) || packet[0] >= 128 || !packet_bytes[packet[0]]) return false;
  uint32_t bytes = packet_bytes[packet[0]];
  if (packet[0] == PACKET_CLEAR_TILE_BUFFERS && is_42) ++bytes;
  if (!read_gpu(r, *address, packet, bytes)) return false;
  *address += bytes;
  return true;
}

static uint32_t word_at(const uint8_t* bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Colour images that a tile list stores, each once. */
static void stores_of(struct reader* r, uint32_t at, uint32_t end, bool is_42, const struct target* size,
                      struct target* targets, uint32_t* count) {
  uint8_t packet[16];
  for (int i = 0; at != end && i < 4096 && next_packet(r, &at, is_42, packet); ++i) {
    if (packet[0] == PACKET_RETURN) return;
    if (packet[0] != PACKET_STORE || (packet[1] & 15) > 7) continue;
    struct target target = *size;
    target.address = word_at(packet + 9);
    target.layout = packet[1] >> 4 & 7;
    target.format = (word_at(packet + 1) >> 12) & 63;
    bool known_one = false;
    for (uint32_t n = 0; n < *count; ++n) known_one |= targets[n].address == target.address;
    if (!known_one && *count < MOST_TARGETS) targets[(*count)++] = target;
  }
}

static uint32_t targets_of(struct reader* lists, struct reader* tiles, const uint32_t range[2], bool is_42,
                           struct target* targets) {
  uint32_t count = 0, at = range[0];
  uint8_t packet[16];
  struct target size = {0};
  for (int i = 0; at != range[1] && i < 1 << 16 && next_packet(lists, &at, is_42, packet); ++i) {
    if (packet[0] == PACKET_RENDERING_MODE && (packet[1] & (is_42 ? 15 : 7)) == 0) {
      size.width = packet[2] | (uint32_t)packet[3] << 8;
      size.height = packet[4] | (uint32_t)packet[5] << 8;
    }
    if (packet[0] == PACKET_GENERIC_TILE_LIST)
      stores_of(tiles, word_at(packet + 1), word_at(packet + 5), is_42, &size, targets, &count);
  }
  return count;
}

/* What a frame of vc4 stores; samples alone, where they are not resolved. */
static uint32_t vc4_target(const struct vc4_submit_cl* args, struct target* target) {
  const struct vc4_surface* color = &args->color_write;
  const bool samples = color->hindex == VC4_NO_SURFACE;
  if (samples) color = &args->msaa_color_write;
  if (color->hindex == VC4_NO_SURFACE) return 0;
  *target = (struct target){0, args->width, args->height, color->bits, samples};
  return 1;
}

static uint32_t drawn_targets(int fd, const struct submission* s, struct bo** bos, uint32_t count,
                              struct target* targets) {
  if (s->is_vc4) return vc4_target(&s->vc4, targets);
  if (s->lists[0] == s->lists[1]) return 0;
  const char* profile = profile_of(fd, false);
  struct reader lists = {.fd = fd, .bos = bos, .count = count}, tiles = lists;
  const uint32_t drawn =
      targets_of(&lists, &tiles, s->lists, profile && strcmp(profile, "rpi4") == 0, targets);
  close_reader(&lists);
  close_reader(&tiles);
  return drawn;
}

/* A frame ends where the next image of the size, format and layout of its first one is drawn. */
static void count_frame(int fd, struct frames* frames, const struct submission* s, struct bo** bos,
                        uint32_t count) {
  struct target targets[MOST_TARGETS];
  if (frames->current == 0) frames->current = 1;
  const uint32_t drawn = drawn_targets(fd, s, bos, count, targets);
  if (drawn == 0) return;
  bool alike = frames->drawn && drawn == frames->num_first;
  for (uint32_t i = 0; alike && i < drawn; ++i)
    alike = targets[i].width == frames->first[i].width && targets[i].height == frames->first[i].height &&
            targets[i].format == frames->first[i].format && targets[i].layout == frames->first[i].layout;
  if (alike) ++frames->current;
  if (alike || !frames->drawn) {
    memcpy(frames->first, targets, drawn * sizeof targets[0]);
    frames->num_first = drawn;
  }
  frames->drawn = true;
}

static bool is_chosen(const struct file* file) {
  if (out.stopped || !open_by_signal) return false;
  if (settings.by_frames &&
      (file->frames.current < settings.frames.first || file->frames.current > settings.frames.last))
    return false;
  return !settings.by_jobs ||
         (submission_number >= settings.jobs.first && submission_number <= settings.jobs.last);
}

/* -- what is no texture
 * --------------------------------------------------------------------------------------
 */

/* The walk over a list of vc4's and its shader records, all of which the kernel checks after it. */
struct vc4_walk {
  const struct submission* s;
  struct bo** bos; /* as the submission names them */
  uint32_t index_bo, num_states;
  struct vc4_state {
    uint32_t bits, max_index;
  } * states;
  struct kept* kept;
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Bytes of a buffer object that is named by its place in the list of handles. */
static bool keep_part(struct vc4_walk* w, uint32_t number, uint64_t from, uint64_t bytes) {
  if (number >= w->s->num_handles) return true; /* which the kernel refuses */
  const struct bo* const bo = w->bos[number];
  const uint64_t size = (uint64_t)bo->pages * PAGE;
  if (from >= size) return true;
  return keep(w->kept, bo->address + from, bo->address + from + least(bytes, size - from));
}

static bool add_state(struct vc4_walk* w, uint32_t bits) {
  struct vc4_state* grown = realloc(w->states, (w->num_states + 1) * sizeof *grown);
  if (!grown) return false;
  w->states = grown;
  w->states[w->num_states++] = (struct vc4_state){bits, 0};
  return true;
}

static void use_index(struct vc4_walk* w, uint32_t index) {
  if (w->num_states == 0) return;
  struct vc4_state* const last = &w->states[w->num_states - 1];
  if (index > last->max_index) last->max_index = index;
}

/* @param packet  all of it. False: no memory */
static bool keep_of_packet(struct vc4_walk* w, const uint8_t* packet) {
  switch (packet[0]) {
    case VC4_PACKET_GEM_HANDLES:
      w->index_bo = word_at(packet + 1);
      return true;
    case VC4_PACKET_INDEXED_PRIMITIVE:
      use_index(w, word_at(packet + 10));
      return keep_part(w, w->index_bo, word_at(packet + 6),
                       (uint64_t)word_at(packet + 2) * (packet[1] >> 4 ? 2 : 1));
    case VC4_PACKET_ARRAY_PRIMITIVE:
      use_index(w, word_at(packet + 6) + word_at(packet + 2) - 1);
      return true;
    case VC4_PACKET_SHADER_STATE:
      return add_state(w, word_at(packet + 1));
    default:
      return true;
  }
}

/* Attributes of the records: from the first to the last one that a draw may use. */
static bool keep_attributes(struct vc4_walk* w, const uint8_t* at, size_t left) {
  for (uint32_t i = 0; i < w->num_states; ++i) {
    const struct vc4_state* const state = &w->states[i];
    const uint32_t count = state->bits & 7 ? state->bits & 7 : 8;
    const bool extended = state->bits & 8;
    const size_t named = (3 + count) * sizeof(uint32_t), bytes = extended ? 100 + 4 * count : 36 + 8 * count;
    if (left < named + bytes) return true;
    const uint8_t* const record = at + named;
    for (uint32_t n = 0; n < count; ++n) {
      const uint8_t* const attribute = record + 36 + 8 * n;
      const uint32_t stride = attribute[5] | (extended ? word_at(record + 100 + 4 * n) & ~255u : 0);
      if (!keep_part(w, word_at(at + 4 * (3 + n)), word_at(attribute),
                     (uint64_t)state->max_index * stride + attribute[4] + 1))
        return false;
    }
    at += named + bytes;
    left -= named + bytes;
  }
  return true;
}

/* 0: there is no such packet. */
static uint8_t vc4_packet_bytes(uint8_t opcode) {
  for (size_t i = 0; i < sizeof vc4_packets / sizeof vc4_packets[0]; ++i)
    if (vc4_packets[i].opcode == opcode) return vc4_packets[i].bytes;
  return 0;
}

/* Shaders, indices and attributes: a submission names nothing else that is no image. False: no memory */
static bool keep_no_textures(struct submission* s, struct bo** bos) {
  struct vc4_walk w = {.s = s, .bos = bos, .kept = &s->kept};
  bool good = true;
  for (uint32_t i = 0; good && i < s->num_handles; ++i)
    if (bos[i]->is_shader) good = keep_part(&w, i, 0, (uint64_t)bos[i]->pages * PAGE);
  for (uint32_t at = 0; good && at < s->vc4.bin_cl_size;) {
    const uint8_t bytes = vc4_packet_bytes(s->vc4_bytes[at]);
    if (bytes == 0 || bytes > s->vc4.bin_cl_size - at) break; /* which the kernel refuses */
    good = keep_of_packet(&w, s->vc4_bytes + at);
    at += bytes;
  }
  good = good && keep_attributes(&w, s->vc4_bytes + whole_words(s->vc4.bin_cl_size), s->vc4.shader_rec_size);
  free(w.states);
  sort_kept(&s->kept);
  return good;
}

/* -- recording ----------------------------------------------------------------------------------------------
 */

/* False: not in time. */
static bool wait_for_bos(int fd, struct bo** bos, uint32_t count, int64_t until) {
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t left = until - now_ns();
    struct v3d_wait_bo wait = {.handle = bos[i]->handle, .timeout_ns = left > 0 ? (uint64_t)left : 0};
    const unsigned number = bos[i]->is_vc4 ? VC4_WAIT_BO : V3D_WAIT_BO; /* of the same form */
    if (call(fd, READ_WRITE, number, &wait, sizeof wait) != 0 && errno == ETIME) return false;
  }
  return true;
}

static bool wait_for_syncs(int fd, const struct submission* s, int64_t until) {
  for (uint32_t i = 0; i < s->num_syncs; ++i) {
    struct syncobj_wait wait = {.handles = (uintptr_t)&s->syncs[i],
                                .timeout_nsec = until,
                                .count_handles = 1,
                                .flags = SYNCOBJ_WAIT_ALL};
    if (call(fd, READ_WRITE, SYNCOBJ_WAIT, &wait, sizeof wait) != 0 && errno == ETIME) return false;
  }
  return true;
}

static struct bo* bo_of(struct bo** bos, uint32_t count, uint32_t handle) {
  for (uint32_t i = 0; i < count; ++i)
    if (bos[i]->handle == handle) return bos[i];
  return NULL;
}

/* What the kernel makes of an indirect dispatch. False: it dispatches nothing. */
static bool resolve_indirect(int fd, struct submission* s, struct bo** bos, uint32_t count) {
  const struct v3d_indirect_csd* args = &s->indirect;
  struct bo* const from = bo_of(bos, count, s->counts_handle);
  const struct bo* const to = bo_of(bos, count, args->indirect);
  struct reader reader = {.fd = fd, .bos = bos, .count = count};
  uint32_t groups[3] = {0};
  if (!from || !to || args->offset % 4) return false;
  const bool good = read_gpu(&reader, from->address + args->offset, (uint8_t*)groups, sizeof groups);
  close_reader(&reader);
  if (!good || !groups[0] || !groups[1] || !groups[2]) return false;
  uint32_t* const cfg = s->jobs[0].words;
  for (int i = 0; i < 3; ++i) cfg[i] = groups[i] << 16;
  const uint32_t batches = (args->wg_size + 15) / 16 * (groups[0] * groups[1] * groups[2]);
  const char* profile = profile_of(fd, false);
  const bool less_one = profile && (strcmp(profile, "rpi4") == 0 || strcmp(profile, "rpi5-7.1.5") == 0);
  cfg[4] = less_one ? batches - 1 : batches;
  for (int i = 0; i < 3; ++i)
    if (args->wg_uniform_offsets[i] != NO_UNIFORM)
      s->written.words[s->written.count++] =
          (struct written_word){to->address + 4 * args->wg_uniform_offsets[i], groups[i]};
  return true;
}

/* A submission of vc4 as it was made, with the places that its buffer objects have in the capture. */
static void write_vc4(const struct file* file, const struct submission* s, struct bo** bos) {
  const size_t bytes = (size_t)vc4_bytes(&s->vc4);
  put_head(RECORD_SUBMISSION, 4 + sizeof s->vc4 + s->num_handles * sizeof(struct submitted_bo) + bytes);
  put(&file->context, 4);
  put(&s->vc4, sizeof s->vc4);
  for (uint32_t i = 0; i < s->num_handles; ++i) {
    const struct submitted_bo bo = {bos[i]->address, bos[i]->pages, bos[i]->is_shader};
    put(&bo, sizeof bo);
  }
  put(s->vc4_bytes, bytes);
}

/* Writes the jobs with an end behind them. @return where they begin */
static uint64_t write_jobs(struct file* file, struct submission* s, struct bo** bos) {
  flush();
  const uint64_t begin = out.end;
  const bool bins = s->num_jobs == 2;
  if (bins) ++out.submission;
  if (s->is_vc4) write_vc4(file, s, bos);
  for (uint32_t i = 0; i < s->num_jobs; ++i) {
    s->jobs[i].context = file->context;
    s->jobs[i].submission = bins ? out.submission : 0;
    put_head(RECORD_JOB, sizeof s->jobs[i]);
    put(&s->jobs[i], sizeof s->jobs[i]);
  }
  out.jobs += s->num_jobs;
  put_end();
  return begin;
}

static void drop_jobs(const struct submission* s, uint64_t begin) {
  out.end = begin;
  out.jobs -= s->num_jobs;
  put_end();
}

static bool said_unknown, said_no_masks;
static void say_once(bool* said, const char* what) {
  if (!*said) say("%s", what);
  *said = true;
}

static int record(int fd, unsigned long request, void* argument, struct file* file, struct submission* s,
                  struct bo** bos, uint32_t count) {
  const int64_t until = now_ns() + settings.patience_ns;
  if (!wait_for_syncs(fd, s, until) || !wait_for_bos(fd, bos, count, until))
    say("submission %u: what it waits for has not ended in time, and may change what is recorded",
        submission_number);
  if (s->is_indirect && !resolve_indirect(fd, s, bos, count)) return next_ioctl(fd, request, argument);
  s->kept.is_all = !settings.masks;
  if (settings.masks && !keep_no_textures(s, bos)) {
    say("submission %u is not recorded: no memory", submission_number);
    return next_ioctl(fd, request, argument);
  }
  if (!begin_capture(fd, file->is_vc4)) return next_ioctl(fd, request, argument);
  write_before(fd, file, bos, count, &s->written, &s->kept);
  const uint64_t begin = write_jobs(file, s, bos);
  const int result = next_ioctl(fd, request, argument);
  const int error = errno;
  if (out.stopped) {
  } else if (result != 0) {
    drop_jobs(s, begin);
  } else if (settings.masks) { /* of what follows from textures nothing is told */
  } else if (wait_for_bos(fd, bos, count, now_ns() + settings.patience_ns)) {
    write_after(fd, file, bos, count, s->binner);
    put_end();
  } else {
    say("submission %u has not ended in time: what it leaves is not recorded", submission_number);
  }
  errno = error;
  return result;
}

/* With `submits` held. */
static int submit(int fd, unsigned long request, void* argument, struct file* file, struct submission* s) {
  uint32_t count = 0;
  struct bo** bos = NULL;
  if (settings.all_bos && !s->is_vc4) { /* whose submissions name all, and others may have been purged */
    bos = all_bos(file, &count);
  } else if ((bos = calloc(s->num_handles + 1, sizeof *bos))) {
    count = take_bos(file, s->handles, s->num_handles, bos);
  }
  if (!bos) return next_ioctl(fd, request, argument);
  if (settings.by_frames) count_frame(fd, &file->frames, s, bos, count);
  bool chosen = s->num_jobs > 0 && is_chosen(file);
  if (chosen && s->is_vc4 && count != s->num_handles) {
    say_once(&said_unknown,
             "a submission names buffer objects whose making was not seen; such ones are not recorded");
    chosen = false;
  }
  if (chosen && settings.masks && !s->is_vc4) {
    say_once(&said_no_masks,
             "V3DREC_MASK_TEXTURES is for the Raspberry Pi 0 to 3, whose submissions tell what is a texture; "
             "nothing is recorded");
    chosen = false;
  }
  const int result =
      chosen ? record(fd, request, argument, file, s, bos, count) : next_ioctl(fd, request, argument);
  const int error = errno;
  give_back(bos, count);
  errno = error;
  return result;
}

static int submitted(int fd, unsigned long request, void* argument) {
  const unsigned number = request & 255;
  struct submission s = {0};
  pthread_mutex_lock(&tables);
  struct file* file = file_of(fd);
  pthread_mutex_unlock(&tables);
  /* Others of vc4 that have the numbers of submissions of v3d submit nothing. */
  if (!file || (file->is_vc4 && number != VC4_SUBMIT_CL)) return next_ioctl(fd, request, argument);
  pthread_mutex_lock(&submits);
  const uint32_t number_before = submission_number++;
  const struct frames frames_before = file->frames;
  const bool taken = take_submission(&s, file->is_vc4, number, argument, request >> 16 & 0x3fff);
  const int result = taken ? submit(fd, request, argument, file, &s) : next_ioctl(fd, request, argument);
  const int error = errno;
  if (result < 0 && (error == EINTR || error == EAGAIN)) { /* comes again, and counts then */
    submission_number = number_before;
    file->frames = frames_before;
  }
  pthread_mutex_unlock(&submits);
  free(s.handles);
  free(s.syncs);
  free(s.vc4_bytes);
  free(s.kept.ranges);
  errno = error;
  return result;
}

/* -- functions of libc that are answered here
 * ----------------------------------------------------------------- */

static bool is_submission(unsigned number) {
  return number == V3D_SUBMIT_CL || number == V3D_SUBMIT_CSD || number == V3D_SUBMIT_TFU ||
         number == V3D_SUBMIT_CPU;
}

/* Of any driver: which one it is, is looked at where it is followed. */
static bool makes_bos(unsigned number) {
  return number == V3D_CREATE_BO || number == VC4_CREATE_BO || number == VC4_CREATE_SHADER_BO ||
         number == CREATE_DUMB || number == GEM_OPEN || number == PRIME_FD_TO_HANDLE;
}

static int handle_ioctl(ioctl_function* next, int fd, unsigned long request, void* argument) {
  const bool is_drm = (request >> 8 & 255) == 'd';
  const unsigned number = request & 255;
  if (is_drm && is_submission(number)) return submitted(fd, request, argument);
  if (is_drm && (number == GEM_CLOSE || number == DESTROY_DUMB)) return close_bo(next, fd, request, argument);
  const int result = next(fd, request, argument);
  if (is_drm && result == 0 && makes_bos(number)) {
    const int error = errno;
    follow(fd, number, argument);
    errno = error;
  }
  return result;
}

EXPORT int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!next_ioctl) next_ioctl = (ioctl_function*)find_next("ioctl");
  return handle_ioctl(next_ioctl, fd, request, argument);
}

#if defined(__arm__)
/* Of programs whose time_t has 64 bits. */
EXPORT int __ioctl_time64(int fd, unsigned long request, ...) {
  static ioctl_function* next;
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!next_ioctl) next_ioctl = (ioctl_function*)find_next("ioctl");
  if (!next) next = (ioctl_function*)find_next("__ioctl_time64");
  return handle_ioctl(next ? next : next_ioctl, fd, request, argument);
}
#endif

EXPORT int close(int fd) {
  if (fd >= 0) forget_fds((unsigned)fd, (unsigned)fd);
  if (!next_close) next_close = (int (*)(int))find_next("close");
  return next_close(fd);
}

EXPORT int dup2(int from, int to) {
  if (to >= 0 && from != to) forget_fds((unsigned)to, (unsigned)to);
  if (!next_dup2) next_dup2 = (int (*)(int, int))find_next("dup2");
  return next_dup2(from, to);
}

EXPORT int dup3(int from, int to, int flags) {
  if (to >= 0 && from != to) forget_fds((unsigned)to, (unsigned)to);
  if (!next_dup3) next_dup3 = (int (*)(int, int, int))find_next("dup3");
  return next_dup3(from, to, flags);
}

EXPORT int close_range(unsigned first, unsigned last, int flags) {
  if (!next_close_range) next_close_range = (int (*)(unsigned, unsigned, int))find_next("close_range");
  if (!next_close_range) {
    errno = ENOSYS;
    return -1;
  }
  const int result = next_close_range(first, last, flags);
  if (result == 0 && !(flags & 4 /* CLOSE_RANGE_CLOEXEC */)) forget_fds(first, last);
  return result;
}

/* -- a process begins, and has children --------------------------------------------------------------------
 */

static void before_fork(void) {
  pthread_mutex_lock(&submits);
  pthread_mutex_lock(&tables);
}

static void after_fork(void) {
  pthread_mutex_unlock(&tables);
  pthread_mutex_unlock(&submits);
}

/* The child records into a file of its own. */
static void in_child(void) {
  if (is_still_open()) next_close(out.fd);
  out.fd = -1;
  out.stopped = false;
  out.end = out.whole = out.buffered = 0;
  chunk.count = 0;
  out.jobs = out.whole_jobs = out.contexts = out.submission = submission_number = 0;
  free(known.places);
  memset(&known, 0, sizeof known);
  for (int i = 0; i < MOST_FILES; ++i) {
    struct file* file = files[i];
    if (!file) continue;
    file->context = 0;
    file->maps_changed = true;
    for (uint32_t n = 0; n < file->num_handles; ++n)
      if (file->bos[n]) {
        free(file->bos[n]->numbers);
        file->bos[n]->numbers = NULL;
      }
  }
  after_fork();
}

__attribute__((constructor)) static void begin(void) {
  if (!next_ioctl) next_ioctl = (ioctl_function*)find_next("ioctl");
  if (!next_close) next_close = (int (*)(int))find_next("close");
  take_signal();
  look_for_zstd();
  pthread_atfork(before_fork, after_fork, in_child);
}
