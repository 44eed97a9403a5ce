"""This file holds the command ``miniverl plan``: what a recipe would do, without doing it."""

from __future__ import annotations

from typing import Annotated

import typer

from miniverl.cli.run import with_backend


def plan(
    recipe: Annotated[str, typer.Argument(help="A YAML file, or the name of a packaged recipe such as quickstart.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...",
            help="Changes to the recipe: rollout.temperature=0.7 sets a key, ~optim.lr gives it its default again.",
        ),
    ] = None,
    rollout_backend: Annotated[
        str | None,
        typer.Option("--rollout-backend", help="Short for rollout.backend=NAME."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole plan as JSON.")] = False,
) -> None:
    """Say what a recipe would do: models, data, steps, memory slots, placement. Loads no weights, starts nothing.

    Example: miniverl plan quickstart rollout.samples_per_prompt=4
    """
    from miniverl.plan.compile import compile_plan
    from miniverl.plan.show import describe, to_json
    from miniverl.recipe.load import load_recipe

    compiled = compile_plan(load_recipe(recipe, with_backend(overrides, rollout_backend)))
    if as_json:
        typer.echo(to_json(compiled), nl=False)
    else:
        typer.echo("\n".join(describe(compiled)))
