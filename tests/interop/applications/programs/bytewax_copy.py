"""Bytewax: a dataflow with recovery, from a topic to a topic. Arguments: bootstrap, folder, input, output."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig
from bytewax.run import cli_main

bootstrap, folder, source, target = sys.argv[1:]
flow = Dataflow("copy")
messages = op.input("in", flow, KafkaSource([bootstrap], [source], tail=True, batch_size=100))
copies = op.map("copy", messages, lambda message: KafkaSinkMessage(message.key, message.value))
op.output("out", copies, KafkaSink([bootstrap], target))

database = Path(folder) / "recovery"
if not database.exists():
    database.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "bytewax.recovery", str(database), "1"], check=True)
cli_main(flow, recovery_config=RecoveryConfig(str(database)), epoch_interval=timedelta(seconds=0.5))
