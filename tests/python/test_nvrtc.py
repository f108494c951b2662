# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_nvrtc.py: CUDA sources are compiled here, without a GPU; what is kept on disk.
import logging
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

import quadriga
from quadriga import nvrtc
from quadriga.errors import InvalidArgument, Unavailable

AXPY = """
template <class T>
__global__ void axpy(quadriga::Tile<const T> x, quadriga::Tile<T> y, T alpha) {
  const long long k = quadriga::thread_x();
  if (k < y.size()) y[k] += alpha * x[k];
}
"""
DOUBLES = ("quadriga::Tile<const double>", "quadriga::Tile<double>", "double")
FLOATS = ("quadriga::Tile<const float>", "quadriga::Tile<float>", "float")


def request(text=AXPY, signature=DOUBLES, options=()):
    return nvrtc.Request("axpy", text, "axpy", signature, options)


@pytest.fixture
def compiled(monkeypatch):
    """Skips without NVRTC; else the requests that were compiled."""
    try:
        nvrtc._Compiler()
    except Unavailable as error:
        pytest.skip(str(error))
    requests = []
    plain = nvrtc._Compiler.compile

    def compile_and_note(self, request, options):
        requests.append(request)
        return plain(self, request, options)

    monkeypatch.setattr(nvrtc._Compiler, "compile", compile_and_note)
    return requests


@pytest.fixture
def cache(tmp_path):
    with quadriga.config(cache=tmp_path / "kept"):
        yield tmp_path / "kept" / "cuda"


def test_code_is_for_the_architecture(compiled, cache):
    image = nvrtc.image_of(request(), 90)
    assert image.code[:4] == b"\x7fELF"
    assert image.name.startswith("_Z4axpyIdE")
    assert nvrtc.image_of(request(), 80).code != image.code


def test_newer_devices_get_what_their_driver_compiles(compiled, cache):
    assert b".entry _Z4axpyIdE" in nvrtc.image_of(request(), 9999).code


def test_older_devices_than_the_compiler_knows_are_refused(compiled, cache):
    with pytest.raises(Unavailable, match="codelet 'axpy'.*architectures .* has 20"):
        nvrtc.image_of(request(), 20)


def test_kernels_are_kept(compiled, cache):
    first = nvrtc.image_of(request(), 90)
    assert len(list(cache.iterdir())) == 1
    assert nvrtc.image_of(request(), 90) == first
    assert len(compiled) == 1


@pytest.mark.parametrize(
    "other",
    [
        request(text=AXPY + "\n"),
        request(signature=FLOATS),
        request(options=("--use_fast_math",)),
    ],
    ids=["source", "types", "options"],
)
def test_what_differs_is_kept_apart(compiled, cache, other):
    nvrtc.image_of(request(), 90)
    nvrtc.image_of(other, 90)
    nvrtc.image_of(other, 80)
    assert len(compiled) == len(list(cache.iterdir())) == 3


def test_versions_of_the_compiler_are_kept_apart(compiled, cache, monkeypatch):
    options = ("--gpu-architecture=sm_90",)
    assert nvrtc._path_of(request(), options, (13, 0)) != nvrtc._path_of(
        request(), options, (13, 1)
    )


@pytest.mark.parametrize(
    "damage", [b"", b"quadriga kernel 1\n", None], ids=["empty", "head", "bit"]
)
def test_damaged_files_are_made_anew(compiled, cache, damage, caplog):
    whole = nvrtc.image_of(request(), 90)
    (path,) = cache.iterdir()
    good = path.read_bytes()
    bad = bytearray(good)
    bad[-9] ^= 4
    path.write_bytes(bad if damage is None else damage)
    with caplog.at_level(logging.WARNING, "quadriga"):
        assert nvrtc.image_of(request(), 90) == whole
    assert "is damaged" in caplog.text
    assert path.read_bytes() == good
    assert len(compiled) == 2


def test_nothing_is_kept_where_others_write(compiled, cache, caplog):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    nvrtc.image_of(request(), 90)
    nvrtc.image_of(request(), 90)
    assert "others can write" in caplog.text
    assert not list(cache.iterdir())
    assert len(compiled) == 2


def test_what_others_can_write_is_not_loaded(compiled, cache):
    nvrtc.image_of(request(), 90)
    cache.chmod(0o777)
    nvrtc.image_of(request(), 90)
    assert len(compiled) == 2


def test_sources_that_include_files_are_not_kept(compiled, cache, tmp_path):
    (tmp_path / "factor.h").write_text("constexpr double factor = 2;\n")
    text = '#include "factor.h"\n' + AXPY.replace("alpha * x", "factor * x")
    nvrtc.image_of(request(text, options=(f"-I{tmp_path}",)), 90)
    assert not cache.exists()


def test_the_cache_may_be_off_or_in_the_way(compiled, tmp_path, caplog):
    with quadriga.config(cache="off"):
        nvrtc.image_of(request(), 90)
    (tmp_path / "file").write_text("")
    with quadriga.config(cache=tmp_path / "file"):
        nvrtc.image_of(request(), 90)
    assert "isn't kept" in caplog.text
    assert len(compiled) == 2


def test_the_cache_is_in_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert quadriga._core.cache_folder() == f"{tmp_path}/quadriga"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert quadriga._core.cache_folder() == f"{tmp_path}/.cache/quadriga"


def test_where_kernels_are_kept_is_told(tmp_path, monkeypatch):
    def kept_in(folder):
        with quadriga.config(cache=folder):
            return nvrtc.kept_in()

    folder = tmp_path / "new" / "cache"
    assert kept_in(folder) == (str(folder / "cuda"), "")
    assert not folder.parent.exists()
    assert kept_in("off") == ("", "")
    (tmp_path / "file").write_text("")
    assert kept_in(tmp_path / "file")[1] == f"{tmp_path / 'file'} is not a folder"
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda").chmod(0o777)
    assert kept_in(tmp_path)[1] == "others can write it"
    monkeypatch.setattr(nvrtc.os, "access", lambda path, mode: path != tmp_path)
    assert kept_in(folder)[1] == f"{tmp_path} can't be written"


def test_what_compiles_is_told(monkeypatch):
    library = types.SimpleNamespace(abs_path="/somewhere/libnvrtc.so.13")
    pathfinder = types.ModuleType("cuda.pathfinder")
    pathfinder.load_nvidia_dynamic_lib = {"nvrtc": library}.get
    monkeypatch.setattr(nvrtc, "_Compiler", lambda: types.SimpleNamespace(version=(13, 0)))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", pathfinder)
    assert nvrtc.found() == "13.0 in /somewhere/libnvrtc.so.13"
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    assert nvrtc.found() == "13.0"


def test_threads_that_compile_the_same_at_once(compiled, cache):
    with ThreadPoolExecutor(4) as pool:
        images = set(pool.map(lambda _: nvrtc.image_of(request(), 90), range(16)))
    assert len(images) == 1
    assert [path.suffix for path in cache.iterdir()] == [""]


def test_errors_of_the_source_say_where(compiled, cache):
    with pytest.raises(InvalidArgument) as failure:
        nvrtc.image_of(request(AXPY.replace("alpha * x", "beta * x")), 90)
    assert "codelet 'axpy'" in str(failure.value)
    assert 'axpy.cu(5): error: identifier "beta" is undefined' in str(failure.value)
    assert not cache.exists()


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        (AXPY, (*DOUBLES[:2], "float")),
        (AXPY, DOUBLES[:2]),
        (AXPY, ("quadriga::Tile<double>", *DOUBLES[1:])),
        (AXPY.replace("axpy", "other"), DOUBLES),
    ],
    ids=["type", "missing", "const", "name"],
)
def test_kernels_of_other_types_are_refused(compiled, cache, text, signature):
    with pytest.raises(InvalidArgument, match="has no kernel that can be called as") as failure:
        nvrtc.image_of(request(text, signature), 90)
    assert ", ".join(signature) in str(failure.value)


def test_tiles_hold_what_launches_pass(compiled, cache):
    """The sizes that python/src/launch.cpp counts on."""
    text = AXPY + "static_assert(sizeof(quadriga::Tile<double>) == 40);"
    nvrtc.image_of(request(text), 90)


def test_without_the_binding_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cuda.bindings", None)
    with pytest.raises(Unavailable, match=r"pip install 'quadriga\[cuda\]'"):
        nvrtc._Compiler()
