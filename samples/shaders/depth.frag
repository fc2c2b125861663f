#version 310 es
void main() {}
