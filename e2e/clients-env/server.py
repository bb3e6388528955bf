"""An environment on OpenEnv's own server, to compare with: a to-do list for each session.

Usage: server.py PORT. The tools are those of the environment "notes" of the tests.
"""

import sys
from uuid import uuid4

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Observation, State


class Notes(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        tools = FastMCP("todo")
        self.todos = []

        @tools.tool
        def update(todos: list[str]) -> str:
            """Replaces the list."""
            self.todos = todos
            return "updated"

        @tools.tool(name="list")
        def listed() -> str:
            """Shows the list."""
            return "\n".join(self.todos)

        super().__init__(tools)
        self._state = State(episode_id=str(uuid4()), step_count=0)

    def reset(self, seed=None, episode_id=None, **kwargs):
        self.todos = []
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        return Observation(done=False, reward=0.0)

    def _step_impl(self, action, timeout_s=None, **kwargs):
        return Observation(done=False, reward=0.0)

    async def step_async(self, action, timeout_s=None, **kwargs):
        self._state.step_count += 1
        return await super().step_async(action, timeout_s=timeout_s, **kwargs)

    @property
    def state(self):
        return self._state


app = create_fastapi_app(Notes, CallToolAction, CallToolObservation, max_concurrent_envs=100_000)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", ws_max_size=100 << 20)
