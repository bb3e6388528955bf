"""Runs episodes of an environment with the published clients of trainers, unchanged.

Usage: episodes.py URL CLIENT COUNT. Prints the reward of each episode as a JSON list.
Each episode solves the task at its index, or answers wrongly where the index is odd.
"""

import asyncio
import json
import re
import sys

url, client, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
TASKS = 4


def plan(prompt, index):
    """The calls of an episode: what the policy of a trainer would do."""
    expression = re.search(r"What is (.+)\?", prompt).group(1)
    if index % 2:
        return [("update", {"todos": [f"[{index}] wait (planned)"]}), ("finish", {"answer": "?"})]
    return [("evaluate", {"expression": expression}), ("finish", {"answer": expression})]


async def generic():
    from openenv.core.generic_client import GenericEnvClient

    rewards = []
    for i in range(count):
        async with GenericEnvClient(base_url=url) as env:
            first = await env.reset(split="train", index=i % TASKS, seed=i)
            tools = await env.step({"type": "list_tools"})
            assert {t["name"] for t in tools.observation["tools"]} >= {"evaluate", "finish"}, tools
            for name, arguments in plan(first.observation["prompt"], i):
                result = await env.step({"type": "call_tool", "tool_name": name, "arguments": arguments})
                assert result.observation["error"] is None, result
            assert result.done, result
            state = await env.state()
            assert state["step_count"] == 2, state
            rewards.append(result.reward)
    return rewards


async def mcp():
    from openenv.core.env_server.mcp_types import CallToolAction
    from openenv.core.mcp_client import MCPToolClient

    rewards = []
    for i in range(count):
        async with MCPToolClient(base_url=url) as env:
            first = await env.reset(split="train", index=i % TASKS, seed=i)
            assert "evaluate" in [t.name for t in await env.list_tools()]
            (name, arguments), (finish, answer) = plan(first.observation.prompt, i)
            await env.call_tool(name, **arguments)
            result = await env.step(CallToolAction(tool_name=finish, arguments=answer))
            assert result.done and result.observation.error is None, result
            rewards.append(result.reward)
    return rewards


def sync():
    from openenv.core.generic_client import GenericEnvClient

    rewards = []
    for i in range(count):
        with GenericEnvClient(base_url=url).sync() as env:
            first = env.reset(split="train", index=i % TASKS, seed=i)
            for name, arguments in plan(first.observation["prompt"], i):
                result = env.step({"type": "call_tool", "tool_name": name, "arguments": arguments})
            assert result.done, result
            rewards.append(result.reward)
    return rewards


def session_rewards(env, tasks):
    rewards = []
    for i in range(count):
        with env.session(tasks[i % TASKS]) as session:
            prompt = session.get_prompt()[0].text
            assert "evaluate" in [t.name for t in session.list_tools()]
            for name, arguments in plan(prompt, i):
                output = session.call_tool(name, arguments)
            assert output.finished, output
            rewards.append(output.reward)
    return rewards


def ors():
    from ors.client import ORS

    client = ORS(base_url=url)  # it is closed when nothing refers to it
    env = client.environment("notes")
    assert "train" in [getattr(s, "name", s) for s in env.list_splits()]
    assert env.num_tasks("train") == TASKS
    return session_rewards(env, env.list_tasks("train"))


def openreward():
    from openreward import EnvironmentsAPI

    env = EnvironmentsAPI(base_url=url, api_key="none").get("notes")
    return session_rewards(env, env.list_tasks("train"))


run = {"generic": generic, "mcp": mcp, "sync": sync, "ors": ors, "openreward": openreward}[client]
rewards = asyncio.run(run()) if asyncio.iscoroutinefunction(run) else run()
print(json.dumps(rewards))
