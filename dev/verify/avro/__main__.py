"""`make verify WHAT=avro`: the Avro engine and Java's Avro on messages of random schemas, whole and damaged.

The exit status is 1 if anything differs.
"""

from __future__ import annotations

import random
import sys
import time

import click

from dev.verify.avro.compare import Found, compare_schema
from dev.verify.avro.judge import JavaJudge

SHOWN = 5
PROGRESS_SECONDS = 30.0  # between lines of progress


@click.command()
@click.option("--messages", default=1_000_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(messages: int, seed: int) -> None:
    """Compare messages of random schemas."""
    found = Found()
    started = printed = time.monotonic()
    with JavaJudge() as java:
        number = 0
        while found.messages < messages and len(found.differences) < SHOWN:
            compare_schema(java, random.Random(f"{seed} {number}"), found)
            number += 1
            if time.monotonic() - printed > PROGRESS_SECONDS:
                printed = time.monotonic()
                click.echo(f"{found.messages:,} of {messages:,} messages")
    for difference in found.differences[:SHOWN]:
        click.echo(f"DIFFERENCE {difference}")
    seconds = time.monotonic() - started
    click.echo(f"{found.messages:,} messages of {number:,} schemas in {seconds:.0f} s, {found.rows:,} of them as rows")
    click.echo(
        f"damaged: {found.both_take:,} taken by both, {found.both_refuse:,} by none, {found.only_java_takes:,} by Java "
        f"alone, {found.only_engine_takes:,} by the engine alone; {len(found.differences)} differ"
    )
    sys.exit(bool(found.differences))


if __name__ == "__main__":
    main()
