#include <stdio.h>

int main(void) { return puts("static ran") < 0; }
