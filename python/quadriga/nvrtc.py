# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/nvrtc.py: compiles CUDA C++ by NVRTC, and keeps what it made on disk.
"""Compiles CUDA C++ for an architecture, once for each source, and caches the result on disk.

A cached kernel is named by a hash of its inputs: source, kernel, options, architecture and version
of the compiler. Its file carries a hash of its content, so that a damaged one is compiled again,
and is written to a temporary file and renamed, so that no process reads half of it. A source that
includes files isn't cached, as these may change, nor is anything in a folder that others can write,
as its code would run here.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import _core
from .beside import beside
from .errors import InvalidArgument, IoError, Unavailable
from .settings import logger

#: What every source begins with; as `DeviceTile` in python/src/launch.cpp.
PRELUDE = """\
namespace quadriga {
template <class T>
struct Tile {
  T* data;
  long long rows, cols, row_step, col_step;
  __device__ long long size() const { return rows * cols; }
  __device__ T& operator()(long long i, long long j) const {
    return data[i * row_step + j * col_step];
  }
  __device__ T& operator[](long long k) const {
    if (cols == 1) return data[k * row_step];
    if (col_step == 1 && row_step == cols) return data[k];
    return data[k / cols * row_step + k % cols * col_step];
  }
};
inline __device__ long long thread_x() {
  return blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
}
inline __device__ long long thread_y() {
  return blockIdx.y * static_cast<long long>(blockDim.y) + threadIdx.y;
}
}  // namespace quadriga
"""
_MAGIC = b"quadriga kernel 1\n"
_INCLUDES = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)


class Image(NamedTuple):
    """A compiled kernel, and its name as the compiler wrote it."""

    code: bytes
    name: str


class Request(NamedTuple):
    """What is to be compiled; `signature` holds the types of the kernel's parameters."""

    title: str
    text: str
    kernel: str
    signature: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def expression(self) -> str:
        """The kernel of this signature: an overload or an instance of a template, too."""
        return f"static_cast<void (*)({', '.join(self.signature)})>(&{self.kernel})"

    @property
    def file(self) -> str:
        """As errors name it."""
        return f"{self.kernel}.cu"


def image_of(request: Request, architecture: int) -> Image:
    """The kernel for devices of an architecture, as 90; from disk if it is there.

    Raises
    ------
    InvalidArgument
        If the source doesn't compile, or has no such kernel; with what the compiler said.
    Unavailable
        If there is no NVRTC, or none that knows a device as old.
    """
    compiler = _Compiler()
    target = compiler.target(request.title, architecture)
    options = ("--std=c++20", f"--gpu-architecture={target}", *request.options)
    path = _path_of(request, options, compiler.version)
    kept = _read(path) if path else None
    if kept is not None:
        return kept
    image = compiler.compile(request, options)
    if path:
        _keep(path, image)
    return image


def found() -> str:
    """NVRTC's version and file; raises Unavailable, as `image_of`, if there is none."""
    version = ".".join(map(str, _Compiler().version))
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return f"{version} in {load_nvidia_dynamic_lib('nvrtc').abs_path}"
    except (ImportError, RuntimeError, OSError):  # the binding has found it, whoever told it where
        return version


def kept_in() -> tuple[str, str]:
    """The folder of compiled kernels, empty if the cache is off; why none are kept there."""
    path = _folder()
    if path is None:
        return "", ""
    try:
        nearest = next(each for each in (path, *path.parents) if each.exists())
        if not nearest.is_dir():
            return str(path), f"{nearest} is not a folder"
        if not os.access(nearest, os.W_OK | os.X_OK):
            return str(path), f"{nearest} can't be written"
        if nearest == path and not _is_ours(path):
            return str(path), "others can write it"
    except OSError as error:
        return str(path), str(error)
    return str(path), ""


class _Compiler:
    """NVRTC by NVIDIA's binding, which finds the library."""

    def __init__(self) -> None:
        try:
            from cuda.bindings import nvrtc
        except ImportError as error:
            raise Unavailable(
                "CUDA sources are compiled by the package cuda-bindings, which isn't installed: "
                f"pip install 'quadriga[cuda]' ({error})"
            ) from error
        self._nvrtc: Any = nvrtc
        try:
            self.version: tuple[int, ...] = tuple(self._values(nvrtc.nvrtcVersion()))
        except Exception as error:
            raise Unavailable(
                "CUDA sources need the library NVRTC, which wasn't found: it comes with the CUDA "
                f"toolkit and with the package nvidia-cuda-nvrtc ({error})"
            ) from error

    def _values(self, result: Any) -> tuple[Any, ...]:
        code, *values = result
        if int(code) != 0:
            raise Unavailable(f"NVRTC: {self._nvrtc.nvrtcGetErrorString(code)[1].decode()}")
        return tuple(values)

    def target(self, title: str, architecture: int) -> str:
        """Code for the very device, or what newer drivers make that of."""
        (known,) = self._values(self._nvrtc.nvrtcGetSupportedArchs())
        if architecture in known:
            return f"sm_{architecture}"
        older = [each for each in known if each < architecture]
        if not older:
            raise Unavailable(
                f"codelet '{title}': NVRTC {'.'.join(map(str, self.version))} compiles for "
                f"architectures {min(known)} to {max(known)}, and a device has {architecture}"
            )
        return f"compute_{max(older)}"

    def compile(self, request: Request, options: tuple[str, ...]) -> Image:
        text = f'{PRELUDE}#line 1 "{request.file}"\n{request.text}\n'
        (program,) = self._values(
            self._nvrtc.nvrtcCreateProgram(text.encode(), request.file.encode(), 0, [], [])
        )
        try:
            return self._compile(program, request, options)
        finally:
            self._nvrtc.nvrtcDestroyProgram(program)

    def _compile(self, program: Any, request: Request, options: tuple[str, ...]) -> Image:
        nvrtc = self._nvrtc
        expression = request.expression.encode()
        self._values(nvrtc.nvrtcAddNameExpression(program, expression))
        given = [option.encode() for option in options]
        (code,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
        log = self._text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        said = log.rstrip(b"\0 \n").decode(errors="replace")
        if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise InvalidArgument(_failure(request, options, said))
        if said:
            logger.info("codelet '%s': NVRTC says:\n%s", request.title, said)
        (name,) = self._values(nvrtc.nvrtcGetLoweredName(program, expression))
        if any(option.startswith("--gpu-architecture=sm_") for option in options):
            made = self._text(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        else:
            made = self._text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        return Image(made, name.decode())

    def _text(self, program: Any, size: Any, content: Any) -> bytes:
        (count,) = self._values(size(program))
        text = bytes(count)  # filled in place, as the binding wants it
        self._values(content(program, text))
        return text


def _failure(request: Request, options: tuple[str, ...], said: str) -> str:
    if "__nv_name_map" in said:
        return (
            f"codelet '{request.title}': its CUDA source has no kernel that can be called as "
            f"__global__ void {request.kernel}({', '.join(request.signature)}); NVRTC says:\n{said}"
        )
    return (
        f"codelet '{request.title}': its CUDA source doesn't compile with "
        f"{' '.join(options)}; NVRTC says:\n{said}"
    )


def _path_of(request: Request, options: tuple[str, ...], version: Sequence[int]) -> Path | None:
    """Where the kernel is kept; None if it isn't to be."""
    folder = _folder()
    reads_files = any("include" in option for option in request.options)
    if folder is None or reads_files or _INCLUDES.search(request.text):
        return None
    parts = (PRELUDE, request.text, request.expression, *options, *map(str, version))
    # Each with its length, so that no two lists of parts make one text.
    whole = "".join(f"{len(part)}:{part}" for part in parts)
    return folder / hashlib.sha256(whole.encode()).hexdigest()


def _folder() -> Path | None:
    """Of compiled kernels; None if the cache is off."""
    folder = _core.cache_folder()
    return Path(folder) / "cuda" if folder else None


def _is_ours(folder: Path) -> bool:
    """Whether no other user can write there."""
    found = folder.stat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return found.st_uid == os.geteuid() and not found.st_mode & others


def _read(path: Path) -> Image | None:
    try:
        if not _is_ours(path.parent):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    size = len(_MAGIC) + 32
    digest, payload = content[len(_MAGIC) : size], content[size:]
    if content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(payload).digest() != digest:
        logger.warning("%s is damaged; the kernel is compiled anew", path)
        return None
    name, code = payload.split(b"\0", 1)
    return Image(code, name.decode())


def _keep(path: Path, image: Image) -> None:
    payload = image.name.encode() + b"\0" + image.code
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(path.parent):
            logger.warning("compiled kernels aren't kept: others can write %s", path.parent)
            return
        with (
            beside(path) as (handle, _),
            open(handle, "wb", closefd=False) as file,
        ):
            file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
    except (IoError, OSError) as error:
        logger.warning("a compiled kernel isn't kept: %s", error)
