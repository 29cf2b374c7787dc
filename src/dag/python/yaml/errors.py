"""What is wrong with a YAML text."""


class YAMLError(Exception):
    """The text is not YAML."""


class MarkedYAMLError(YAMLError):
    """The text is not YAML, at a certain line."""

    def __init__(self, problem, line=None):
        self.problem = problem
        self.line = line
        super().__init__(problem if line is None else f'{problem}\n  in "<unicode string>", line {line}')
