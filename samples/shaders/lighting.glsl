// Light from a hemisphere of sky, and from the lamp as far as it is seen (0 to 1); distant surfaces fade to the sky.
vec3 shade(vec3 at, vec3 normal, vec3 base, float gloss, float seen) {
  vec3 to_eye = scene.eye.xyz - at;
  vec3 to_light = normalize(scene.light_position.xyz - at);
  vec3 middle = normalize(normalize(to_eye) + to_light);
  float diffuse = max(dot(normal, to_light), 0.0) * seen;
  float exponent = mix(10.0, 160.0, gloss);
  float highlight = pow(max(dot(normal, middle), 0.0), exponent) * gloss * seen * step(0.0, dot(normal, to_light));
  vec3 ambient = mix(vec3(0.10, 0.09, 0.08), scene.sky.rgb * 0.6 + 0.12, 0.5 + 0.5 * normal.y);
  vec3 color = base * (ambient + scene.light_color.rgb * diffuse) + scene.light_color.rgb * highlight;
  return mix(color, scene.sky.rgb, smoothstep(0.3, 1.0, length(to_eye) * scene.sky.w));
}

vec4 to_screen(vec3 color) { return vec4(pow(clamp(color, 0.0, 1.0), vec3(1.0 / 2.2)), 1.0); }
