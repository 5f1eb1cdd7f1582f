"""A trained module as files: safetensors, state_dict, ONNX."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sabun.errors import MissingExtra

__all__ = ["described", "onnx_files", "state_dict_bytes", "written"]


def described(module: nn.Module) -> dict[str, Any]:
    """What a card says about a module; sizes, classes and features are for classifiers of our own."""
    size = sum(p.numel() for p in module.parameters())
    return {"sizes": [], "classes": [], "features": {}, "module": type(module).__name__, "parameters": size}


def written(module: nn.Module) -> bytes:
    """Parameters with buffers in the safetensors format.

    Raises:
        MissingExtra: safetensors is not installed.
    """
    try:
        from safetensors.torch import save
    except ImportError:
        raise MissingExtra(job="writing a model file", package="safetensors", extra="learning") from None
    return bytes(save({name: value.detach().cpu().contiguous() for name, value in module.state_dict().items()}))


def state_dict_bytes(module: nn.Module) -> bytes:
    """The same as torch itself writes them."""
    sink = io.BytesIO()
    torch.save(module.state_dict(), sink)
    return sink.getvalue()


def onnx_files(module: nn.Module, example: Tensor, name: str) -> dict[str, bytes]:
    """The module traced on a made-up batch; large ones come in several files.

    Raises:
        MissingExtra: onnx is not installed.
    """
    try:
        import onnx  # noqa: F401 (torch's exporter needs it and fails late without)
    except ImportError:
        raise MissingExtra(job="writing ONNX", package="onnx", extra="learning") from None
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    module.eval()
    with tempfile.TemporaryDirectory() as folder:
        torch.onnx.export(
            module,
            (example.to(device),),
            str(Path(folder) / name),
            dynamo=False,
            input_names=["rows"],
            output_names=["scores"],
            dynamic_axes={"rows": {0: "n"}},
        )
        return {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}
