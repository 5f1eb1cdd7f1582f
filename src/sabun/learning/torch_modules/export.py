"""A trained module as files: safetensors, state_dict, ONNX."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from sabun.errors import MissingExtra

__all__ = ["write_onnx", "written"]


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


def write_onnx(module: nn.Module, example: Tensor, path: Path) -> None:
    """Traces the module on a made-up batch.

    Raises:
        MissingExtra: onnx is not installed.
    """
    try:
        import onnx  # noqa: F401 (torch's exporter needs it and fails late without)
    except ImportError:
        raise MissingExtra(job="writing ONNX", package="onnx", extra="learning") from None
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    module.eval()
    torch.onnx.export(
        module,
        (example.to(device),),
        str(path),
        dynamo=False,
        input_names=["rows"],
        output_names=["scores"],
        dynamic_axes={"rows": {0: "n"}},
    )
