"""A model on loopback that speaks the providers' APIs and says what its script says.

    with model_server([Turn(tool_calls=[run_command("echo hi > out.txt")]), Turn("Done.")]) as model:
        ...  # a client with base_url=model.base_url and api_key=model.key

Which turn a request gets follows from the conversation in it, so retries and conversations side by side do no harm."""

from securebench.testing.model_server.asked import Api, Asked
from securebench.testing.model_server.connection import Request
from securebench.testing.model_server.server import KEY, MODEL, ModelServer, model_server, serve_model
from securebench.testing.model_server.turns import Fault, Scene, Script, ToolCall, Turn, mentions, run_command

__all__ = [
    "KEY",
    "MODEL",
    "Api",
    "Asked",
    "Fault",
    "ModelServer",
    "Request",
    "Scene",
    "Script",
    "ToolCall",
    "Turn",
    "mentions",
    "model_server",
    "run_command",
    "serve_model",
]
