// SPDX-License-Identifier: BSD-3-Clause
// src/base/shared_library.cpp: the loader's own interface.
#include "base/shared_library.h"

#include <dlfcn.h>

namespace quadriga {

SharedLibrary::SharedLibrary(const std::string& name)
    : handle_(::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
  if (handle_) return;
  const char* const reason = ::dlerror();
  absence_ = reason ? reason : name + " can't be opened";
}

void* SharedLibrary::find(const char* function) const noexcept {
  return handle_ ? ::dlsym(handle_, function) : nullptr;
}

}  // namespace quadriga
