/* OpenGL in X windows, as told on the standard input:
 *
 *   gl_window egl|glx WINDOWS COLUMN     of 160x120, in columns 320 pixels wide from that one on
 *
 *   draw WINDOW FRAME                a picture that depends on the frame's number and the window's size alone
 *   size WINDOW WIDTH HEIGHT         resizes it and waits until the server has told of it
 *   interval N                       of swaps, from now on
 *   frames WINDOW COUNT              draws so many
 *   front WINDOW FRAME               draws a square of it into what the window shows (GL_FRONT)
 *   copy WINDOW FRAME                draws, and shows the lower left quarter alone (glXCopySubBufferMESA)
 *
 * Prints "renderer: NAME", "window ID" of each window, and "done MICROSECONDS" after each command. Ends with
 * its input. Exit status: 0; 2 something failed.
 */
#define GL_GLEXT_PROTOTYPES
#define _GNU_SOURCE
#include <EGL/egl.h>
#include <GL/gl.h>
#include <GL/glx.h>
#include <X11/Xlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kWindows = 4, kWidth = 160, kHeight = 120 };

static Display* display;
static XVisualInfo visual;
static int windows, column, use_egl, width[kWindows], height[kWindows];
static Window window[kWindows];
static EGLDisplay egl;
static EGLConfig egl_config;
static EGLContext egl_context;
static EGLSurface surface[kWindows];
static GLXFBConfig glx_config;
static GLXContext glx_context;
static GLint frame_uniform;

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s\n", what);
  exit(2);
}

static void choose_egl(void) {
  const EGLint attributes[] = {
      EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_RED_SIZE, 8, EGL_DEPTH_SIZE, 24, EGL_NONE};
  EGLint count = 0, id = 0;
  egl = eglGetDisplay((EGLNativeDisplayType)display);
  require(eglInitialize(egl, NULL, NULL) && eglBindAPI(EGL_OPENGL_API), "EGL");
  require(eglChooseConfig(egl, attributes, &egl_config, 1, &count) && count == 1, "a configuration");
  eglGetConfigAttrib(egl, egl_config, EGL_NATIVE_VISUAL_ID, &id);
  visual.visualid = (VisualID)id;
  XVisualInfo* found = XGetVisualInfo(display, VisualIDMask, &visual, &count);
  require(count == 1, "a visual");
  visual = *found;
  egl_context = eglCreateContext(egl, egl_config, EGL_NO_CONTEXT, NULL);
}

static void choose_glx(void) {
  const int attributes[] = {GLX_RED_SIZE, 8, GLX_DEPTH_SIZE, 24, GLX_DOUBLEBUFFER, True, None};
  int count = 0;
  GLXFBConfig* configs = glXChooseFBConfig(display, DefaultScreen(display), attributes, &count);
  require(count > 0, "a configuration");
  glx_config = configs[0];
  visual = *glXGetVisualFromFBConfig(display, glx_config);
  glx_context = glXCreateNewContext(display, glx_config, GLX_RGBA_TYPE, NULL, True);
  require(glx_context && glXIsDirect(display, glx_context), "a direct context");
}

static void make_window(int i) {
  XSetWindowAttributes attributes = {0};
  attributes.override_redirect = True;
  attributes.event_mask = StructureNotifyMask;
  attributes.colormap = XCreateColormap(display, DefaultRootWindow(display), visual.visual, AllocNone);
  width[i] = kWidth;
  height[i] = kHeight;
  window[i] = XCreateWindow(display, DefaultRootWindow(display), (column + i) * 320, 0, kWidth, kHeight, 0,
                            visual.depth, InputOutput, visual.visual,
                            CWOverrideRedirect | CWEventMask | CWColormap | CWBorderPixel, &attributes);
  XMapWindow(display, window[i]);
  if (use_egl) surface[i] = eglCreateWindowSurface(egl, egl_config, window[i], NULL);
}

static void make_current(int i) {
  require(use_egl ? (int)eglMakeCurrent(egl, surface[i], surface[i], egl_context)
                  : glXMakeContextCurrent(display, window[i], window[i], glx_context),
          "a current context");
}

static void swap(int i) {
  if (use_egl)
    require((int)eglSwapBuffers(egl, surface[i]), "eglSwapBuffers");
  else
    glXSwapBuffers(display, window[i]);
}

static GLuint compile(GLenum stage, const char* source) {
  const GLuint shader = glCreateShader(stage);
  GLint compiled = 0;
  glShaderSource(shader, 1, &source, NULL);
  glCompileShader(shader);
  glGetShaderiv(shader, GL_COMPILE_STATUS, &compiled);
  require(compiled, "a shader");
  return shader;
}

static void make_program(void) {
  static const float corners[] = {-0.9f, -0.8f, 0.9f, -0.7f, -0.7f, 0.9f, 0.8f, 0.8f};
  const GLuint program = glCreateProgram();
  glAttachShader(
      program, compile(GL_VERTEX_SHADER,
                       "attribute vec2 corner; varying vec2 place;\n"
                       "void main() { place = corner * 0.5 + 0.5; gl_Position = vec4(corner, 0.0, 1.0); }"));
  glAttachShader(program,
                 compile(GL_FRAGMENT_SHADER,
                         "uniform float frame; varying vec2 place;\n"
                         "void main() {\n"
                         "  float band = step(0.5, fract(place.x * 4.0 + frame * 0.125));\n"
                         "  gl_FragColor = vec4(place, band * 0.5 + fract(frame * 0.0625) * 0.5, 1.0);\n"
                         "}"));
  glBindAttribLocation(program, 0, "corner");
  glLinkProgram(program);
  glUseProgram(program);
  frame_uniform = glGetUniformLocation(program, "frame");
  GLuint buffer;
  glGenBuffers(1, &buffer);
  glBindBuffer(GL_ARRAY_BUFFER, buffer);
  glBufferData(GL_ARRAY_BUFFER, sizeof corners, corners, GL_STATIC_DRAW);
  glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 0, NULL);
  glEnableVertexAttribArray(0);
}

static void draw(int i, int frame) {
  make_current(i);
  glViewport(0, 0, width[i], height[i]);
  glClearColor(0.25f, 0, 0.5f, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  glUniform1f(frame_uniform, (float)frame);
  glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
}

static void resize(int i, int w, int h) {
  width[i] = w;
  height[i] = h;
  XResizeWindow(display, window[i], (unsigned)w, (unsigned)h);
  for (XEvent event;;) {
    XWindowEvent(display, window[i], StructureNotifyMask, &event);
    if (event.type == ConfigureNotify && event.xconfigure.width == w && event.xconfigure.height == h) return;
  }
}

static void set_interval(int interval) {
  typedef int (*SwapInterval)(unsigned);
  if (use_egl) {
    require((int)eglSwapInterval(egl, interval), "eglSwapInterval");
  } else {
    SwapInterval set = (SwapInterval)glXGetProcAddress((const GLubyte*)"glXSwapIntervalMESA");
    require(set && set((unsigned)interval) == 0, "glXSwapIntervalMESA");
  }
}

static void copy_quarter(int i) {
  typedef void (*CopySubBuffer)(Display*, GLXDrawable, int, int, int, int);
  CopySubBuffer copy = (CopySubBuffer)glXGetProcAddress((const GLubyte*)"glXCopySubBufferMESA");
  require(!use_egl && copy, "glXCopySubBufferMESA");
  copy(display, window[i], 0, 0, width[i] / 2, height[i] / 2);
}

static void draw_front(int i, int frame) {
  make_current(i);
  glDrawBuffer(GL_FRONT);
  glEnable(GL_SCISSOR_TEST);
  glScissor(16, 16, 24, 24);
  draw(i, frame);
  glDisable(GL_SCISSOR_TEST);
  glFlush();
  glDrawBuffer(GL_BACK);
}

static long microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void run(const char* line) {
  int i = 0, a = 0, b = 0;
  if (sscanf(line, "draw %d %d", &i, &a) == 2) {
    draw(i, a);
    swap(i);
  } else if (sscanf(line, "size %d %d %d", &i, &a, &b) == 3) {
    resize(i, a, b);
  } else if (sscanf(line, "interval %d", &a) == 1) {
    set_interval(a);
  } else if (sscanf(line, "frames %d %d", &i, &a) == 2) {
    for (int frame = 0; frame < a; ++frame) {
      draw(i, frame);
      swap(i);
    }
  } else if (sscanf(line, "front %d %d", &i, &a) == 2) {
    draw_front(i, a);
  } else if (sscanf(line, "copy %d %d", &i, &a) == 2) {
    draw(i, a);
    copy_quarter(i);
  } else {
    require(0, line);
  }
  glFinish();
  XSync(display, False);
}

int main(int argc, char** argv) {
  require(argc == 4, "gl_window egl|glx WINDOWS COLUMN");
  use_egl = strcmp(argv[1], "egl") == 0;
  windows = atoi(argv[2]);
  column = atoi(argv[3]);
  require(windows > 0 && windows <= kWindows, "one to four windows");
  display = XOpenDisplay(NULL);
  require(display != NULL, "an X server");
  if (use_egl)
    choose_egl();
  else
    choose_glx();
  for (int i = 0; i < windows; ++i) make_window(i);
  make_current(0);
  make_program();
  XSync(display, False);
  printf("renderer: %s\n", (const char*)glGetString(GL_RENDERER));
  for (int i = 0; i < windows; ++i) printf("window %#lx\n", window[i]);
  fflush(stdout);
  for (char line[256]; fgets(line, sizeof line, stdin);) {
    const long start = microseconds();
    run(line);
    printf("done %ld\n", microseconds() - start);
    fflush(stdout);
  }
  return 0;
}
