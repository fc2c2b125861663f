layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer In { uint values[]; };
layout(binding = 1) writeonly buffer Where { uint where[]; };    // subgroup in the high half, lane in the low
layout(binding = 2) writeonly buffer Out { uint results[]; };  // kResults an invocation
void tell(uint at, uint value) { results[gl_LocalInvocationIndex * kResults + at] = value; }
void start() { where[gl_LocalInvocationIndex] = gl_SubgroupID << 16 | gl_SubgroupInvocationID; }
