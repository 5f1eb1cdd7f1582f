"""At the coordinator: asks each node once, writes what comes back into the inbox; nothing is believed before it is verified."""

import hashlib
import time
from pathlib import Path

from flwr.app import Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

LARGEST = 2**20
PATIENCE = 120


def main(grid: Grid, context: Context) -> None:
    """One round: wait for the nodes, ask, store. File names are made from the bytes, never taken from a node."""
    inbox, wanted = Path(str(context.run_config["inbox"])), int(context.run_config["nodes"])
    inbox.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + PATIENCE
    while len(nodes := list(grid.get_node_ids())) < wanted and time.monotonic() < deadline:
        time.sleep(1)
    questions = [Message(RecordDict(), dst_node_id=node, message_type=MessageType.QUERY) for node in nodes]
    for reply in grid.send_and_receive(questions, timeout=PATIENCE):
        if reply.has_error():
            continue
        for content in reply.content.config_records["outbox"]["contents"]:
            if isinstance(content, bytes) and len(content) <= LARGEST:
                (inbox / f"{hashlib.sha256(content).hexdigest()[:16]}.json").write_bytes(content)


app = ServerApp()
app.main()(main)
