// SPDX-License-Identifier: BSD-3-Clause
// src/base/unwinder.cpp: looks where the dynamic linker has bound libgcc's calls of its own
// functions.
#include "base/unwinder.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <string_view>

namespace quadriga {
namespace {

/// What a loaded library calls by name, as its dynamic section tells.
struct Calls {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * slots = nullptr;
  std::size_t count = 0;
};

Calls calls_of(const link_map& library) {
  Calls calls;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB)
      calls.symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) calls.names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_JMPREL)
      calls.slots = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_PLTRELSZ) calls.count = entry->d_un.d_val / sizeof(ElfW(Rela));
  }
  if (!calls.symbols || !calls.names || !calls.slots) calls.count = 0;
  return calls;
}

/// What a call of a library's own function leads to.
void* callee_of(void* handle, const char* name, void* bound, const void* base) {
  Dl_info info{};
  const bool is_inside = ::dladdr(bound, &info) != 0 && info.dli_fbase == base;
  // What leads inside, but not to the function, is bound at the first call.
  return is_inside && bound != ::dlsym(handle, name) ? ::dlsym(RTLD_DEFAULT, name) : bound;
}

/// Those that read or write a frame's context, whose layout is the unwinder's own.
bool uses_context(std::string_view name) {
  return name.starts_with("_Unwind_Get") || name.starts_with("_Unwind_Set");
}

}  // namespace

std::string foreign_unwinder() {
  void* const handle = ::dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return "";
  std::string found;
  link_map* library = nullptr;
  Dl_info own{};
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &library) == 0 && ::dladdr(library->l_ld, &own) != 0) {
    const Calls calls = calls_of(*library);
    for (std::size_t i = 0; i < calls.count && found.empty(); ++i) {
      const ElfW(Rela)& slot = calls.slots[i];
      const char* const name = calls.names + calls.symbols[ELF64_R_SYM(slot.r_info)].st_name;
      if (!uses_context(name)) continue;
      void* const bound = *reinterpret_cast<void**>(library->l_addr + slot.r_offset);
      Dl_info callee{};
      if (::dladdr(callee_of(handle, name, bound, own.dli_fbase), &callee) != 0 &&
          callee.dli_fbase != own.dli_fbase)
        found = callee.dli_fname;
    }
  }
  ::dlclose(handle);
  return found;
}

}  // namespace quadriga
