"""Entry point for spark-submit: `spark-submit … submit.py run --config /etc/cdc.toml`; see docs/guides/spark.md."""

from materializer.cli import main

main()
