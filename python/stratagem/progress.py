"""Who is told how far a call is."""
import sys


def print_steps(steps, done, of):
    """Writes "12 of 30 runs" over the line before; the last one stays."""
    print(f"\r{done} of {of} {steps} ", end="\n" if done == of else "", file=sys.stderr, flush=True)


class Teller:
    """Hands on what a call tells, from any of its threads.

    An exception, such as that of a key that interrupts, ends the telling; it is raised when the
    call ends.
    """

    def __init__(self, progress):
        self._tell = print_steps if progress is True else progress
        self._raised = None

    def __call__(self, steps, done, of):
        try:
            if self._raised is None:
                self._tell(steps, done, of)
        except BaseException as error:  # pylint: disable=broad-except
            self._raised = error

    def end(self):
        if self._raised is not None:
            raise self._raised


def told(progress, call):
    """What `call` returns, given who is told: nobody, where `progress` is false."""
    if not progress:
        return call(None)
    teller = Teller(progress)
    result = call(teller)
    teller.end()
    return result
