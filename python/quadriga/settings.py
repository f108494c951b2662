# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/settings.py: quadriga.config, show_config() and messages to Python's logging.
"""Settings: arguments override `quadriga.config`, then come QUADRIGA_* and then a file."""

from __future__ import annotations

import html
import logging
import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TextIO

from . import _core
from .errors import Error, InvalidType

logger = logging.getLogger("quadriga")


class Setting(NamedTuple):
    """A setting in force, and where it comes from.

    Attributes
    ----------
    key : str
    value : str, int or bool
        Sizes are in bytes.
    origin, source : str
        The kind of source of the value, and its name: a variable or a file.
    meaning : str
        The setting's meaning, in one line.
    text : str
        The value as written, such as "2GiB".
    """

    key: str
    value: Any
    origin: str
    source: str
    meaning: str
    text: str


def as_text(key: str, value: object) -> str:
    """A value as the settings are written: flags in small letters."""
    if value is None:
        raise InvalidType(f"setting {key}: None; delete it to restore its default")
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


class Config(MutableMapping[str, Any]):
    """The settings, by attribute or by key.

    Values are typed: flags are bools, numbers and sizes (in bytes) are ints, all others strings.
    Text as in the environment is accepted too. Deleting a key forgets the value that the program
    set. A call sets values for a ``with`` block.

    Raises
    ------
    InvalidArgument
        For an unknown setting or an invalid value; AttributeError if an unknown setting is read
        as an attribute.

    Examples
    --------
    >>> import quadriga
    >>> with quadriga.config(tile=256):
    ...     quadriga.config.tile
    256
    >>> quadriga.config["policy"]
    'affinity'
    """

    def __getitem__(self, key: str) -> Any:
        return Setting(*_core.setting(key)).value

    def __setitem__(self, key: str, value: object) -> None:
        _core.set_setting(key, as_text(key, value))
        if key == "log_level":
            _follow_log_level()

    def __delitem__(self, key: str) -> None:
        _core.unset_setting(key)
        if key == "log_level":
            _follow_log_level()

    def __iter__(self) -> Iterator[str]:
        return (setting.key for setting in settings())

    def __len__(self) -> int:
        return len(settings())

    def __contains__(self, key: object) -> bool:
        return any(setting.key == key for setting in settings())

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_") or key not in self:
            known = ", ".join(self)
            raise AttributeError(f"no setting {key!r}; known are {known}")
        return self[key]

    def __setattr__(self, key: str, value: object) -> None:
        self[key] = value

    def __delattr__(self, key: str) -> None:
        del self[key]

    @contextmanager
    def __call__(self, **values: object) -> Iterator[Config]:
        """Set values until the block ends.

        Parameters
        ----------
        **values
            Settings by name, as in ``quadriga.config(devices="cpu:2", tile=512)``.
        """
        before = {setting.key: setting for setting in settings()}
        try:
            for key, value in values.items():
                self[key] = value
            yield self
        finally:
            for key in values:
                _restore(before.get(key))

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{key}={value!r}' for key, value in self.items())})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><b>{html.escape(s.key)}</b></td><td>{html.escape(s.text)}</td>"
            f"<td>{html.escape(s.source or s.origin)}</td><td>{html.escape(s.meaning)}</td></tr>"
            for s in settings()
        )
        return f"<table>{rows}</table>"


def _restore(before: Setting | None) -> None:
    if before is None:
        return
    if before.origin == "program":
        config[before.key] = before.text
    else:
        del config[before.key]


def settings() -> list[Setting]:
    """All settings with their values, in a fixed order."""
    return [Setting(*each) for each in _core.settings()]


def show_config(file: TextIO | None = None) -> None:
    """Print every setting with its value, the source of the value, and its meaning.

    Parameters
    ----------
    file : file-like, optional
        Where to print; standard output by default.

    Examples
    --------
    >>> import quadriga
    >>> quadriga.show_config()  # doctest: +ELLIPSIS
    devices ...
    """
    rows = settings()
    keys = max(len(setting.key) for setting in rows)
    values = max(len(setting.text) for setting in rows)
    origins = max(len(setting.source or setting.origin) for setting in rows)
    for setting in rows:
        origin = setting.source or setting.origin
        line = f"{setting.key:<{keys}}  {setting.text:<{values}}  {origin:<{origins}}  "
        line += setting.meaning
        print(line.rstrip(), file=file)


def _follow_log_level() -> None:
    """The library asks its own level before it calls; Python's logger decides after that."""
    _core.set_log_level(config["log_level"])


def _log(level: int, message: str) -> None:
    logger.log(level, message)


config = Config()


def install_logging() -> None:
    """Send the library's messages to the logger "quadriga"; done once, when imported."""
    logger.addHandler(logging.NullHandler())
    _core.log_to(_log)
    # A setting from outside that isn't accepted is for whoever reads it, not for who imports.
    with suppress(Error):
        _follow_log_level()
