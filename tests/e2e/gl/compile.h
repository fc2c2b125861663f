/// Shaders of any OpenGL: include it behind the headers of the one that is meant.
#pragma once

#include <string>

namespace e2e {

/// @param log  gets what the driver says where it fails
inline bool compile(GLenum stage, const std::string& source, GLuint* shader, std::string* log) {
  *shader = glCreateShader(stage);
  const char* const text = source.c_str();
  glShaderSource(*shader, 1, &text, nullptr);
  glCompileShader(*shader);
  GLint compiled = 0;
  glGetShaderiv(*shader, GL_COMPILE_STATUS, &compiled);
  char said[1024] = "";
  if (!compiled) glGetShaderInfoLog(*shader, sizeof said, nullptr, said);
  *log = said;
  return compiled != 0;
}

}  // namespace e2e
