"""This file holds the entry of ``python -m miniverl``, which is the command miniverl."""

from miniverl.cli.main import main

if __name__ == "__main__":
    main()
