"""Ctrl-C, however it arrives."""


def was_stopped(error: BaseException | None) -> bool:
    """Whether an error is Ctrl-C: pressed while a compiled kernel runs, it arrives as the cause of a SystemError."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
