"""What spark-submit runs: `spark-submit … submit_transformer.py run --config /etc/cdc.toml`; see docs/transformers.md."""

from transformer.cli import main

main()
