/* OpenGL ES without a window: a triangle and a textured quad through EGL, on a GBM device or the surfaceless
 * platform, every pixel compared with values computed here, and performance counters of a draw.
 *
 *   offscreen gbm|surfaceless
 */
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES2/gl2.h>
#include <GLES2/gl2ext.h>
#include <fcntl.h>
#include <gbm.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWidth = 120, kHeight = 90 };

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s (EGL %#x)\n", what, eglGetError());
  exit(1);
}

static EGLDisplay open_display(const char* platform) {
  PFNEGLGETPLATFORMDISPLAYEXTPROC get_display =
      (PFNEGLGETPLATFORMDISPLAYEXTPROC)eglGetProcAddress("eglGetPlatformDisplayEXT");
  require(get_display != NULL, "eglGetPlatformDisplayEXT");
  if (strcmp(platform, "surfaceless") == 0)
    return get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
  const int fd = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  require(fd >= 0, "open /dev/dri/renderD128");
  struct gbm_device* device = gbm_create_device(fd);
  require(device != NULL, "gbm_create_device");
  return get_display(EGL_PLATFORM_GBM_KHR, device, NULL);
}

static GLuint program(const char* vertex, const char* fragment) {
  const GLuint p = glCreateProgram();
  const char* sources[2] = {vertex, fragment};
  const GLenum stages[2] = {GL_VERTEX_SHADER, GL_FRAGMENT_SHADER};
  for (int i = 0; i < 2; ++i) {
    const GLuint shader = glCreateShader(stages[i]);
    glShaderSource(shader, 1, &sources[i], NULL);
    glCompileShader(shader);
    GLint compiled = 0;
    glGetShaderiv(shader, GL_COMPILE_STATUS, &compiled);
    require(compiled, "shader compiles");
    glAttachShader(p, shader);
  }
  glBindAttribLocation(p, 0, "position");
  glLinkProgram(p);
  GLint linked = 0;
  glGetProgramiv(p, GL_LINK_STATUS, &linked);
  require(linked, "program links");
  glUseProgram(p);
  return p;
}

static uint8_t pixels[kHeight][kWidth][4];

static void read_back(void) {
  glReadPixels(0, 0, kWidth, kHeight, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
  require(glGetError() == GL_NO_ERROR, "no GL error");
}

static void check_triangle(void) {
  program(
      "attribute vec2 position; varying vec2 p; void main() { p = position; gl_Position = vec4(position, 0, "
      "1); }",
      "precision mediump float; varying vec2 p; void main() { gl_FragColor = vec4(p * 0.5 + 0.5, 0.25, 1); "
      "}");
  static const float corners[] = {-1, -1, 1, -1, -1, 1};
  glEnableVertexAttribArray(0);
  glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, corners);
  glClearColor(0.5f, 0, 0, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  glDrawArrays(GL_TRIANGLES, 0, 3);
  read_back();
  int inside = 0;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const double u = (x + 0.5) / kWidth, v = (y + 0.5) / kHeight;
      if (fabs(u + v - 1) < 0.01) continue;
      const int in = u + v < 1;
      const double expected[3] = {in ? u : 0.5, in ? v : 0, in ? 0.25 : 0};
      inside += in;
      for (int c = 0; c < 3; ++c)
        if (fabs(pixels[y][x][c] - expected[c] * 255) > 2) {
          fprintf(stderr, "triangle: pixel %d,%d channel %d is %d, not %.1f\n", x, y, c, pixels[y][x][c],
                  expected[c] * 255);
          exit(1);
        }
    }
  require(inside > kWidth * kHeight / 3, "the triangle covers pixels");
}

static void check_texture(void) {
  uint8_t texels[8][8][4];
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x)
      for (int c = 0; c < 4; ++c) texels[y][x][c] = (uint8_t)(x * 31 + y * (17 + c) + c * 40);
  GLuint texture = 0;
  glGenTextures(1, &texture);
  glBindTexture(GL_TEXTURE_2D, texture);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 8, 8, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  program(
      "attribute vec2 position; varying highp vec2 p;"
      "void main() { p = position * 0.5 + 0.5; gl_Position = vec4(position, 0, 1); }",
      "precision highp float; varying highp vec2 p; uniform sampler2D image;"
      "void main() { gl_FragColor = texture2D(image, p); }");
  static const float corners[] = {-1, -1, 1, -1, -1, 1, 1, 1};
  glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, corners);
  glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
  read_back();
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const double u = (x + 0.5) / kWidth * 8, v = (y + 0.5) / kHeight * 8;
      if (fabs(u - round(u)) < 0.01 || fabs(v - round(v)) < 0.01) continue;
      for (int c = 0; c < 4; ++c)
        if (abs(pixels[y][x][c] - texels[(int)v][(int)u][c]) > 1) {
          fprintf(stderr, "texture: pixel %d,%d channel %d is %d, not %d\n", x, y, c, pixels[y][x][c],
                  texels[(int)v][(int)u][c]);
          exit(1);
        }
    }
}

enum { kMaxCounters = 256 };

/* Looks a counter up by its name in all groups. */
static void find_counter(const char* wanted, GLuint* group, GLuint* counter) {
  PFNGLGETPERFMONITORGROUPSAMDPROC get_groups =
      (PFNGLGETPERFMONITORGROUPSAMDPROC)eglGetProcAddress("glGetPerfMonitorGroupsAMD");
  PFNGLGETPERFMONITORCOUNTERSAMDPROC get_counters =
      (PFNGLGETPERFMONITORCOUNTERSAMDPROC)eglGetProcAddress("glGetPerfMonitorCountersAMD");
  PFNGLGETPERFMONITORCOUNTERSTRINGAMDPROC get_name =
      (PFNGLGETPERFMONITORCOUNTERSTRINGAMDPROC)eglGetProcAddress("glGetPerfMonitorCounterStringAMD");
  require(get_groups && get_counters && get_name, "GL_AMD_performance_monitor");
  GLint group_count = 0;
  GLuint groups[kMaxCounters], counters[kMaxCounters];
  get_groups(&group_count, kMaxCounters, groups);
  for (GLint g = 0; g < group_count; ++g) {
    GLint count = 0, active = 0;
    get_counters(groups[g], &count, &active, kMaxCounters, counters);
    for (GLint i = 0; i < count; ++i) {
      char name[128] = "";
      get_name(groups[g], counters[i], sizeof name, NULL, name);
      if (strcmp(name, wanted) != 0) continue;
      *group = groups[g];
      *counter = counters[i];
      return;
    }
  }
  fprintf(stderr, "no counter %s\n", wanted);
  exit(1);
}

/* Full-screen triangles under a performance monitor: what was binned (or, by VideoCore IV, drawn in each of
   four tiles), the 2x2 quads that were written, and clocks, which the timing model counts (or which follow
   from the instructions). */
static void check_performance_monitor(int vc4, int timed) {
  enum { kDraws = 3, kTiles = 4, kExact = 2, kCounters = 3 };
  static const char* const names_of[2][kCounters] = {
      {"PTB-primitives-binned", "TLB-quads-written-to-color-buffer", "cycle-count"},
      {"FEP-valid-primitives-rendered-pixels", "TLB-quads-written-to-color-buffer",
       "QPU-total-clk-cycles-executing-valid-instr"}};
  const char* const* const names = names_of[vc4];
  const uint64_t expected[kExact] = {vc4 ? kDraws * kTiles : kDraws, (uint64_t)kDraws * kWidth * kHeight / 4};
  PFNGLGENPERFMONITORSAMDPROC generate =
      (PFNGLGENPERFMONITORSAMDPROC)eglGetProcAddress("glGenPerfMonitorsAMD");
  PFNGLSELECTPERFMONITORCOUNTERSAMDPROC choose =
      (PFNGLSELECTPERFMONITORCOUNTERSAMDPROC)eglGetProcAddress("glSelectPerfMonitorCountersAMD");
  PFNGLBEGINPERFMONITORAMDPROC begin =
      (PFNGLBEGINPERFMONITORAMDPROC)eglGetProcAddress("glBeginPerfMonitorAMD");
  PFNGLENDPERFMONITORAMDPROC end = (PFNGLENDPERFMONITORAMDPROC)eglGetProcAddress("glEndPerfMonitorAMD");
  PFNGLGETPERFMONITORCOUNTERDATAAMDPROC get_data =
      (PFNGLGETPERFMONITORCOUNTERDATAAMDPROC)eglGetProcAddress("glGetPerfMonitorCounterDataAMD");
  require(generate && choose && begin && end && get_data, "GL_AMD_performance_monitor");
  GLuint monitor = 0, groups[kCounters], counters[kCounters];
  generate(1, &monitor);
  for (int i = 0; i < kCounters; ++i) {
    find_counter(names[i], &groups[i], &counters[i]);
    choose(monitor, GL_TRUE, groups[i], 1, &counters[i]);
  }
  program("attribute vec2 position; void main() { gl_Position = vec4(position, 0, 1); }",
          "precision mediump float; void main() { gl_FragColor = vec4(1); }");
  static const float corners[] = {-1, -1, 3, -1, -1, 3};
  glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, corners);
  glFinish();
  begin(monitor);
  for (int i = 0; i < kDraws; ++i) glDrawArrays(GL_TRIANGLES, 0, 3);
  end(monitor);
  glFinish();
  GLuint available = 0, data[4 * kCounters] = {0};
  GLsizei written = 0;
  get_data(monitor, GL_PERFMON_RESULT_AVAILABLE_AMD, sizeof available, &available, NULL);
  require(available, "the monitor has its result");
  get_data(monitor, GL_PERFMON_RESULT_AMD, sizeof data, data, &written);
  require(written == sizeof data, "a group, a counter and 64 bits for each result");
  for (int entry = 0; entry < kCounters; ++entry) {
    const GLuint* result = data + 4 * entry;
    for (int i = 0; i < kCounters; ++i) {
      if (result[0] != groups[i] || result[1] != counters[i]) continue;
      const uint64_t value = result[2] | (uint64_t)result[3] << 32;
      if (i < kExact ? value == expected[i] : (vc4 || timed) == (value != 0)) continue;
      fprintf(stderr, "%s is %llu\n", names[i], (unsigned long long)value);
      exit(1);
    }
  }
  require(glGetError() == GL_NO_ERROR, "no GL error");
}

int main(int argc, char** argv) {
  require(argc == 2 || argc == 3, "usage: offscreen gbm|surfaceless [timed]");
  const EGLDisplay display = open_display(argv[1]);
  require(eglInitialize(display, NULL, NULL), "eglInitialize");
  require(eglBindAPI(EGL_OPENGL_ES_API), "eglBindAPI");
  static const EGLint config_attributes[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT,
                                             EGL_NONE};
  EGLConfig config;
  EGLint count = 0;
  require(eglChooseConfig(display, config_attributes, &config, 1, &count) && count == 1, "eglChooseConfig");
  static const EGLint context_attributes[] = {EGL_CONTEXT_CLIENT_VERSION, 2, EGL_NONE};
  const EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, context_attributes);
  require(context != EGL_NO_CONTEXT, "eglCreateContext");
  require(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context), "eglMakeCurrent");
  const char* renderer = (const char*)glGetString(GL_RENDERER);
  printf("%s\n", renderer);
  const int vc4 = strncmp(renderer, "VC4 ", 4) == 0;
  require(strncmp(renderer + 4 * vc4, "V3D ", 4) == 0, "the renderer is a V3D");

  GLuint color = 0, framebuffer = 0;
  glGenTextures(1, &color);
  glBindTexture(GL_TEXTURE_2D, color);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, kWidth, kHeight, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
  glGenFramebuffers(1, &framebuffer);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, color, 0);
  require(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "framebuffer is complete");
  glViewport(0, 0, kWidth, kHeight);
  check_triangle();
  check_texture();
  check_performance_monitor(vc4, argc > 2 && strcmp(argv[2], "timed") == 0);
  return 0;
}
