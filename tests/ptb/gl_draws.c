/* Primitive assembly, geometry shaders and transform feedback through the real OpenGL ES driver: every kind
 * of draw must give exactly the pixels of the same primitives drawn one by one as a list, and transform
 * feedback exactly their words. Needs no other implementation to compare with.
 */
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl32.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSize = 128, kVertices = 64, kMaxList = 4096 };

static int failures;

static void require(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s (EGL %#x, GL %#x)\n", what, eglGetError(), glGetError());
  exit(1);
}

static uint32_t random_state = 1;
static uint32_t random_bits(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}
static float random_float(float low, float high) {
  return low + (high - low) * (float)(random_bits() & 0xffff) / 65536.0f;
}

/* ---- Shaders */

static const char kVertexShader[] =
    "#version 310 es\n"
    "layout(location = 0) in vec4 position; layout(location = 1) in vec4 color;\n"
    "uniform int first_instance;\n"
    "flat out vec4 flat_color; out vec4 smooth_color;\n"
    "void main() {\n"
    "  int i = gl_InstanceID + first_instance;\n"
    "  gl_Position = position + vec4(float(i) * 0.25, float(i) * -0.125, 0, 0) * position.w;\n"
    "  gl_PointSize = 3.0; flat_color = color; smooth_color = color; }\n";
static const char kFragmentShader[] =
    "#version 310 es\nprecision highp float;\n"
    "flat in vec4 flat_color; in vec4 smooth_color; out vec4 result;\n"
    "void main() { result = vec4(flat_color.rg, smooth_color.ba); }\n";

static GLuint compile(GLenum stage, const char* source) {
  const GLuint shader = glCreateShader(stage);
  glShaderSource(shader, 1, &source, NULL);
  glCompileShader(shader);
  GLint compiled = 0;
  glGetShaderiv(shader, GL_COMPILE_STATUS, &compiled);
  require(compiled, source);
  return shader;
}

static GLuint link_program(const char* geometry, const char* const* captured, int num_captured) {
  const GLuint program = glCreateProgram();
  glAttachShader(program, compile(GL_VERTEX_SHADER, kVertexShader));
  if (geometry) glAttachShader(program, compile(GL_GEOMETRY_SHADER, geometry));
  glAttachShader(program, compile(GL_FRAGMENT_SHADER, kFragmentShader));
  if (num_captured) glTransformFeedbackVaryings(program, num_captured, captured, GL_INTERLEAVED_ATTRIBS);
  glLinkProgram(program);
  GLint linked = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &linked);
  require(linked, "program links");
  return program;
}

/* ---- Vertices and lists */

struct Vertex {
  float position[4];
  uint8_t color[4];
};
static struct Vertex vertices[kVertices];

static void upload_vertices(int perspective) {
  for (int i = 0; i < kVertices; ++i) {
    const float w = perspective ? random_float(-0.5f, 2) : random_float(0.5f, 2);
    const float reach = perspective ? 1.2f : w;
    for (int k = 0; k < 3; ++k) vertices[i].position[k] = random_float(-reach, reach);
    vertices[i].position[3] = w;
    for (int k = 0; k < 4; ++k) vertices[i].color[k] = (uint8_t)random_bits();
  }
  glBufferData(GL_ARRAY_BUFFER, sizeof(vertices), vertices, GL_STATIC_DRAW);
  glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, sizeof(struct Vertex), (void*)0);
  glVertexAttribPointer(1, 4, GL_UNSIGNED_BYTE, GL_TRUE, sizeof(struct Vertex), (void*)16);
  glEnableVertexAttribArray(0);
  glEnableVertexAttribArray(1);
}

struct List {
  GLenum mode; /* GL_POINTS, GL_LINES or GL_TRIANGLES */
  int count;
  uint32_t index[kMaxList];
};

static void add(struct List* list, const uint32_t* v, int n, const int* order) {
  for (int i = 0; i < n; ++i) list->index[list->count++] = v[order[i]];
}

/* Appends the primitives of a run of vertices, the provoking (last) vertex of the API last. */
static void expand(GLenum mode, const uint32_t* v, int n, struct List* list) {
  switch (mode) {
    case GL_POINTS:
      list->mode = GL_POINTS;
      for (int i = 0; i < n; ++i) add(list, v, 1, (int[]){i});
      break;
    case GL_LINES:
    case GL_LINE_STRIP:
    case GL_LINE_LOOP:
      list->mode = GL_LINES;
      for (int i = 0; i + 1 < n; i += mode == GL_LINES ? 2 : 1) add(list, v, 2, (int[]){i, i + 1});
      if (mode == GL_LINE_LOOP && n >= 2) add(list, v, 2, (int[]){n - 1, 0});
      break;
    case GL_TRIANGLES:
    case GL_TRIANGLE_STRIP:
      list->mode = GL_TRIANGLES;
      for (int i = 0; i + 2 < n; i += mode == GL_TRIANGLES ? 3 : 1) {
        const int odd = mode == GL_TRIANGLE_STRIP && i % 2;
        add(list, v, 3, (int[]){i + odd, i + 1 - odd, i + 2});
      }
      break;
    case GL_TRIANGLE_FAN:
      list->mode = GL_TRIANGLES;
      for (int i = 1; i + 1 < n; ++i) add(list, v, 3, (int[]){0, i, i + 1});
      break;
    case GL_LINES_ADJACENCY:
    case GL_LINE_STRIP_ADJACENCY:
      list->mode = GL_LINES;
      for (int i = 0; i + 3 < n; i += mode == GL_LINES_ADJACENCY ? 4 : 1)
        add(list, v, 2, (int[]){i + 1, i + 2});
      break;
    case GL_TRIANGLES_ADJACENCY:
      list->mode = GL_TRIANGLES;
      for (int i = 0; i + 5 < n; i += 6) add(list, v, 3, (int[]){i, i + 2, i + 4});
      break;
    default: /* GL_TRIANGLE_STRIP_ADJACENCY */
      list->mode = GL_TRIANGLES;
      for (int i = 0; i + 5 < n; i += 2) {
        const int odd = i / 2 % 2 ? 2 : 0;
        add(list, v, 3, (int[]){i + odd, i + 2 - odd, i + 4});
      }
      break;
  }
}

/* ---- Drawing and comparing */

static GLint first_instance_at;
static uint8_t picture[kSize * kSize * 4], wanted[kSize * kSize * 4];

static void clear(void) {
  glClearColor(0.25f, 0.5f, 0.75f, 1);
  glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
}
static void read_back(uint8_t* to) { glReadPixels(0, 0, kSize, kSize, GL_RGBA, GL_UNSIGNED_BYTE, to); }

static void upload_indices(const void* data, size_t bytes) {
  glBufferData(GL_ELEMENT_ARRAY_BUFFER, (GLsizeiptr)bytes, data, GL_STREAM_DRAW);
}

static void draw_list(GLuint program, const struct List* list, int instances) {
  glUseProgram(program);
  upload_indices(list->index, sizeof(uint32_t) * (size_t)list->count);
  for (int i = 0; i < instances; ++i) {
    glUniform1i(first_instance_at, i);
    glDrawElements(list->mode, list->count, GL_UNSIGNED_INT, NULL);
  }
  glUniform1i(first_instance_at, 0);
}

static void compare(const char* name, GLenum mode) {
  require(glGetError() == GL_NO_ERROR, name);
  int drawn = 0;
  for (int i = 0; i < kSize * kSize; ++i) drawn += memcmp(wanted + 4 * i, wanted, 4) != 0;
  if (memcmp(picture, wanted, sizeof(picture)) == 0 && drawn > 0) return;
  ++failures;
  int differing = 0;
  for (int i = 0; i < kSize * kSize; ++i) differing += memcmp(picture + 4 * i, wanted + 4 * i, 4) != 0;
  fprintf(stderr, "%s, mode %#x: %d pixels differ, %d drawn\n", name, mode, differing, drawn);
}

static void check_arrays(GLuint program, GLenum mode) {
  uint32_t run[kVertices];
  for (uint32_t i = 0; i < 20; ++i) run[i] = 3 + i;
  struct List list = {0};
  expand(mode, run, 20, &list);
  for (int instances = 1; instances <= 3; instances += 2) {
    clear();
    glUseProgram(program);
    if (instances == 1)
      glDrawArrays(mode, 3, 20);
    else
      glDrawArraysInstanced(mode, 3, 20, instances);
    read_back(picture);
    clear();
    draw_list(program, &list, instances);
    read_back(wanted);
    compare(instances == 1 ? "arrays" : "instanced arrays", mode);
  }
}

/* Elements of one size with primitive restart; direct, instanced and indirect. */
static void check_elements(GLuint program, GLenum mode, int size) {
  const GLenum type = size == 1 ? GL_UNSIGNED_BYTE : size == 2 ? GL_UNSIGNED_SHORT : GL_UNSIGNED_INT;
  uint32_t run[80];
  uint8_t bytes[80 * 4];
  struct List list = {0};
  int length = 0;
  for (int i = 0; i < 80; ++i) {
    const int restart = random_bits() % 9 == 0;
    const uint32_t index = restart ? ~0u : random_bits() % 50;
    memcpy(bytes + i * size, &index, (size_t)size);
    if (restart) {
      expand(mode, run, length, &list);
      length = 0;
    } else {
      run[length++] = index;
    }
  }
  expand(mode, run, length, &list);
  glEnable(GL_PRIMITIVE_RESTART_FIXED_INDEX);
  for (int way = 0; way < 3; ++way) {
    clear();
    glUseProgram(program);
    upload_indices(bytes, (size_t)(80 * size));
    if (way == 0) glDrawElements(mode, 80, type, NULL);
    if (way == 1) glDrawElementsInstanced(mode, 80, type, NULL, 2);
    if (way == 2) {
      const uint32_t record[5] = {80, 2, 0, 0, 0};
      glBufferData(GL_DRAW_INDIRECT_BUFFER, sizeof(record), record, GL_STREAM_DRAW);
      glDrawElementsIndirect(mode, type, NULL);
    }
    read_back(picture);
    clear();
    draw_list(program, &list, way == 0 ? 1 : 2);
    read_back(wanted);
    compare(way == 0 ? "elements" : way == 1 ? "instanced elements" : "indirect elements", mode);
  }
  glDisable(GL_PRIMITIVE_RESTART_FIXED_INDEX);
}

static void check_culling(GLuint program, GLenum mode) {
  glEnable(GL_CULL_FACE);
  for (int way = 0; way < 4; ++way) {
    glCullFace(way & 1 ? GL_FRONT : GL_BACK);
    glFrontFace(way & 2 ? GL_CW : GL_CCW);
    check_arrays(program, mode);
  }
  glDisable(GL_CULL_FACE);
  glFrontFace(GL_CCW);
  glCullFace(GL_BACK);
}

/* ---- Geometry shaders: hand the real vertices through, or the adjacent ones */

static const char* geometry_source(const char* input, const char* output, const char* picks, int num_picks) {
  static char source[2000];
  snprintf(source, sizeof(source),
           "#version 310 es\n#extension GL_EXT_geometry_shader : require\n"
           "layout(%s, invocations = 2) in; layout(%s, max_vertices = 8) out;\n"
           "in vec4 smooth_color_in[];\n"
           "flat out vec4 flat_color; out vec4 smooth_color;\n"
           "void main() { int picks[] = int[](%s);\n"
           "  if (gl_InvocationID == 1) return;\n"
           "  for (int i = 0; i < %d; ++i) {\n"
           "    gl_Position = gl_in[picks[i]].gl_Position; smooth_color = smooth_color_in[picks[i]];\n"
           "    flat_color = smooth_color_in[picks[%d]]; EmitVertex(); }\n"
           "  EndPrimitive(); }\n",
           input, output, picks, num_picks, num_picks - 1);
  return source;
}

static GLuint geometry_program(const char* geometry) {
  static const char kVertex[] =
      "#version 310 es\n"
      "layout(location = 0) in vec4 position; layout(location = 1) in vec4 color; out vec4 smooth_color_in;\n"
      "void main() { gl_Position = position; smooth_color_in = color; }\n";
  const GLuint program = glCreateProgram();
  glAttachShader(program, compile(GL_VERTEX_SHADER, kVertex));
  glAttachShader(program, compile(GL_GEOMETRY_SHADER, geometry));
  glAttachShader(program, compile(GL_FRAGMENT_SHADER, kFragmentShader));
  glLinkProgram(program);
  GLint linked = 0;
  glGetProgramiv(program, GL_LINK_STATUS, &linked);
  require(linked, "program with a geometry shader links");
  return program;
}

static void check_geometry(GLuint plain, GLenum mode, const char* input, const char* output,
                           const char* picks, int num_picks) {
  uint32_t run[kVertices];
  for (uint32_t i = 0; i < kVertices; ++i) run[i] = i;
  const GLuint program = geometry_program(geometry_source(input, output, picks, num_picks));
  for (int n = 4; n < 23; n += 3) {
    struct List list = {0};
    expand(mode, run, n, &list);
    if (list.count == 0) continue;
    clear();
    glUseProgram(program);
    glDrawArrays(mode, 0, n);
    read_back(picture);
    clear();
    draw_list(plain, &list, 1);
    read_back(wanted);
    compare("geometry shader", mode);
  }
  glDeleteProgram(program);
}

/* The vertices adjacent to the sides of a strip's triangles, OpenGL 4.6 table 10.1 (numbers from 0). */
static void check_strip_adjacency(GLuint plain) {
  const GLuint program =
      geometry_program(geometry_source("triangles_adjacency", "triangle_strip", "1, 3, 5", 3));
  for (int triangles = 1; triangles < 8; ++triangles) {
    struct List list = {.mode = GL_TRIANGLES};
    for (int i = 0; i < triangles; ++i) {
      const uint32_t v = (uint32_t)(2 * i), before = i == 0 ? 1 : v - 2;
      const uint32_t after = i == triangles - 1 ? v + 5 : v + 6, own = v + 3;
      const uint32_t odd[3] = {before, own, after}, even[3] = {before, after, own};
      memcpy(list.index + list.count, i % 2 ? odd : even, sizeof(odd));
      list.count += 3;
    }
    clear();
    glUseProgram(program);
    glDrawArrays(GL_TRIANGLE_STRIP_ADJACENCY, 0, 2 * triangles + 4);
    read_back(picture);
    clear();
    draw_list(plain, &list, 1);
    read_back(wanted);
    compare("adjacent vertices", GL_TRIANGLE_STRIP_ADJACENCY);
  }
  glDeleteProgram(program);
}

/* ---- Transform feedback */

static void check_feedback(GLenum mode, int per_primitive) {
  static const char* const captured[] = {"smooth_color", "gl_Position"};
  enum { kWords = 8, kRoom = 20 }; /* room for that many vertices */
  const GLuint program = link_program(NULL, captured, 2);
  GLuint buffer, query;
  glGenBuffers(1, &buffer);
  glGenQueries(1, &query);
  for (int discard = 0; discard < 2; ++discard) {
    glUseProgram(program);
    glBindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, buffer);
    glBufferData(GL_TRANSFORM_FEEDBACK_BUFFER, kRoom * kWords * 4 + 64, NULL, GL_STREAM_READ);
    glBindBufferRange(GL_TRANSFORM_FEEDBACK_BUFFER, 0, buffer, 0, kRoom * kWords * 4);
    if (discard) glEnable(GL_RASTERIZER_DISCARD);
    glBeginQuery(GL_TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN, query);
    glBeginTransformFeedback(mode);
    glDrawArrays(mode, 2, 7);
    glDrawArrays(mode, 11, 31); /* more than there is room for */
    glEndTransformFeedback();
    glEndQuery(GL_TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN);
    glDisable(GL_RASTERIZER_DISCARD);
    GLuint written = 0;
    glGetQueryObjectuiv(query, GL_QUERY_RESULT, &written);
    require((int)written == kRoom / per_primitive, "primitives written by transform feedback");
    const float* words =
        glMapBufferRange(GL_TRANSFORM_FEEDBACK_BUFFER, 0, kRoom * kWords * 4, GL_MAP_READ_BIT);
    const int first_draw = 7 / per_primitive * per_primitive;
    for (int i = 0; i < (int)written * per_primitive; ++i) {
      const struct Vertex* v = &vertices[i < first_draw ? 2 + i : 11 + i - first_draw];
      require(memcmp(words + i * kWords + 4, v->position, 16) == 0, "captured position");
      for (int k = 0; k < 4; ++k)
        require(fabsf(words[i * kWords + k] - (float)v->color[k] / 255.0f) < 1e-6f, "captured colour");
    }
    glUnmapBuffer(GL_TRANSFORM_FEEDBACK_BUFFER);
  }
  glDeleteProgram(program);
}

/* ---- Set-up */

static void make_context(void) {
  PFNEGLGETPLATFORMDISPLAYEXTPROC get_display =
      (PFNEGLGETPLATFORMDISPLAYEXTPROC)eglGetProcAddress("eglGetPlatformDisplayEXT");
  require(get_display != NULL, "eglGetPlatformDisplayEXT");
  EGLDisplay display = get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
  require(eglInitialize(display, NULL, NULL), "eglInitialize");
  eglBindAPI(EGL_OPENGL_ES_API);
  static const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1, EGL_NONE};
  EGLContext context = eglCreateContext(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attributes);
  require(context != EGL_NO_CONTEXT, "OpenGL ES 3.1 context");
  require(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context), "eglMakeCurrent");
  printf("%s\n", (const char*)glGetString(GL_RENDERER));
}

static void make_frame(void) {
  GLuint names[2], framebuffer, array, buffers[3];
  glGenRenderbuffers(2, names);
  glGenFramebuffers(1, &framebuffer);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  const GLenum formats[2] = {GL_RGBA8, GL_DEPTH_COMPONENT24};
  const GLenum points[2] = {GL_COLOR_ATTACHMENT0, GL_DEPTH_ATTACHMENT};
  for (int i = 0; i < 2; ++i) {
    glBindRenderbuffer(GL_RENDERBUFFER, names[i]);
    glRenderbufferStorage(GL_RENDERBUFFER, formats[i], kSize, kSize);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, points[i], GL_RENDERBUFFER, names[i]);
  }
  require(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "complete framebuffer");
  glViewport(0, 0, kSize, kSize);
  glGenVertexArrays(1, &array);
  glBindVertexArray(array);
  glGenBuffers(3, buffers);
  glBindBuffer(GL_ARRAY_BUFFER, buffers[0]);
  glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, buffers[1]);
  glBindBuffer(GL_DRAW_INDIRECT_BUFFER, buffers[2]);
}

int main(void) {
  make_context();
  make_frame();
  const GLuint program = link_program(NULL, NULL, 0);
  first_instance_at = glGetUniformLocation(program, "first_instance");
  const GLenum modes[] = {GL_POINTS,    GL_LINES,          GL_LINE_LOOP,   GL_LINE_STRIP,
                          GL_TRIANGLES, GL_TRIANGLE_STRIP, GL_TRIANGLE_FAN};
  for (int perspective = 0; perspective < 2; ++perspective) {
    upload_vertices(perspective);
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); ++m) {
      check_arrays(program, modes[m]);
      /* The hardware takes points and lines for front faces: culling those loses them too. */
      if (modes[m] >= GL_TRIANGLES) check_culling(program, modes[m]);
      for (int size = 1; size <= 4; size *= 2) check_elements(program, modes[m], size);
    }
    check_geometry(program, GL_LINES, "lines", "line_strip", "0, 1", 2);
    check_geometry(program, GL_LINE_STRIP, "lines", "line_strip", "0, 1", 2);
    check_geometry(program, GL_TRIANGLES, "triangles", "triangle_strip", "0, 1, 2", 3);
    check_geometry(program, GL_TRIANGLE_STRIP, "triangles", "triangle_strip", "0, 1, 2", 3);
    check_geometry(program, GL_TRIANGLE_FAN, "triangles", "triangle_strip", "0, 1, 2", 3);
    check_geometry(program, GL_LINES_ADJACENCY, "lines_adjacency", "line_strip", "1, 2", 2);
    check_geometry(program, GL_LINE_STRIP_ADJACENCY, "lines_adjacency", "line_strip", "1, 2", 2);
    check_geometry(program, GL_TRIANGLES_ADJACENCY, "triangles_adjacency", "triangle_strip", "0, 2, 4", 3);
    check_geometry(program, GL_TRIANGLE_STRIP_ADJACENCY, "triangles_adjacency", "triangle_strip", "0, 2, 4",
                   3);
    check_strip_adjacency(program);
  }
  upload_vertices(0);
  check_feedback(GL_POINTS, 1);
  check_feedback(GL_LINES, 2);
  check_feedback(GL_TRIANGLES, 3);
  require(glGetError() == GL_NO_ERROR, "no GL error");
  printf("%d failures\n", failures);
  return failures != 0;
}
