// src/bad_license.cpp: has no license line.
int bad() { return 1; }
