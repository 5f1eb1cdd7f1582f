"""At the coordinator: asks each node once, writes what comes back into the inbox; nothing is believed before it is verified."""

import hashlib
import time
from pathlib import Path

from flwr.app import Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

LARGEST = 2**20
MOST = 100
PATIENCE = 120


def main(grid: Grid, context: Context) -> None:
    """One round: wait for the nodes, ask, store. A reply of any other form is left out, and does not stop the others'."""
    inbox, wanted = Path(str(context.run_config["inbox"])), int(context.run_config["nodes"])
    inbox.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + PATIENCE
    while len(nodes := list(grid.get_node_ids())) < wanted and time.monotonic() < deadline:
        time.sleep(1)
    questions = [Message(RecordDict(), dst_node_id=node, message_type=MessageType.QUERY) for node in nodes]
    for reply in grid.send_and_receive(questions, timeout=PATIENCE):
        for content in contents_of(reply):
            # The name is made from the bytes, never taken from a node.
            (inbox / f"{hashlib.sha256(content).hexdigest()[:16]}.json").write_bytes(content)


def contents_of(reply: Message) -> list[bytes]:
    """The small files of one reply, at most 100; none of a reply that is an error or has another form."""
    try:
        found = [] if reply.has_error() else list(reply.content.config_records["outbox"]["contents"])
    except Exception as error:  # whatever a node sent
        print(f"Left out a reply that cannot be read ({type(error).__name__}).")
        return []
    return [content for content in found[:MOST] if isinstance(content, bytes) and len(content) <= LARGEST]


app = ServerApp()
app.main()(main)
