"""The pictures of the examples: ``python -m examples.pictures`` writes them anew."""

from __future__ import annotations

from examples.running import Example, examples


def picture(example: Example) -> str:
    """The topology of an example, drawn as ``pykstreams describe --format svg`` does."""
    topology, _ = example.topology()
    return topology.describe().to_svg().rstrip("\n") + "\n"


def main() -> None:
    for example in examples().values():
        example.picture.write_text(picture(example), encoding="utf-8")
        print(example.picture)


if __name__ == "__main__":
    main()
