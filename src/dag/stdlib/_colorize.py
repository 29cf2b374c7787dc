"""Colours for terminals: none here. The standard library's own imports dataclasses, which takes long."""

COLORIZE = False


class _NoColors:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return ""

    def __getitem__(self, name):
        return ""

    def get(self, name, default=""):
        return ""


class ANSIColors(_NoColors):
    pass


NoColors = _NoColors()
ColorCodes = frozenset()


class _Theme:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return NoColors


default_theme = theme_no_color = _Theme()


def can_colorize(*, file=None):
    return False


def get_colors(colorize=False, *, file=None):
    return NoColors


def get_theme(*, tty_file=None, force_color=False, force_no_color=False):
    return theme_no_color


def set_theme(theme):
    pass


def decolor(text):
    return text
