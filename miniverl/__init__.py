"""Post-training of language models on one GPU: the library. It never imports Ray; the processes are in ``actors``."""

__version__ = "0.1.0"
__all__ = ["__version__", "inspect", "run"]


def __getattr__(name: str):
    """``miniverl.run`` and ``miniverl.inspect``, loaded when asked for: importing miniverl costs nothing.

    ``plan`` is reached as ``miniverl.api.plan``; ``miniverl.plan`` is the room that makes plans.
    """
    if name in ("run", "inspect"):
        from miniverl import api

        return getattr(api, name)
    raise AttributeError(f"module 'miniverl' has no attribute {name!r}")
