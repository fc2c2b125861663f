layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 4) in vec4 row0;  // of the instance's model matrix
layout(location = 5) in vec4 row1;
layout(location = 6) in vec4 row2;

vec3 to_world(vec4 v) { return vec3(dot(row0, v), dot(row1, v), dot(row2, v)); }
