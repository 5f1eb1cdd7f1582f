"""On each node: hands over the small .json files of the outbox that the node's owner named; looks nowhere else."""

from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

LARGEST = 2**20
MOST = 100


def query(message: Message, context: Context) -> Message:
    """Returns the outbox: file names with their bytes, at most 100 of at most a megabyte."""
    outbox = Path(str(context.node_config["outbox"]))
    found = sorted(path for path in outbox.glob("*.json") if path.is_file() and not path.is_symlink())
    small = [path for path in found if path.stat().st_size <= LARGEST][:MOST]
    record = ConfigRecord({"names": [path.name for path in small], "contents": [path.read_bytes() for path in small]})
    return Message(RecordDict({"outbox": record}), reply_to=message)


app = ClientApp()
app.query()(query)
