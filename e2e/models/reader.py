"""Holds conversations with the official Python libraries of the model APIs.

Standard input has one JSON object a line, standard output one for each:

    {"open": "openai", "base": URL, "system": TEXT, "prompt": TEXT, "tools": [NAME]}
        begins a conversation and answers {}.
    {"results": [{"id", "name", "text", "failed"}], "stream": BOOL}
        sends the results of the last answer's calls, or the prompt where there was none, and
        answers what the library read: {"text", "calls": [{"id", "name", "arguments"}], "stop",
        "input", "output", "cached"}. arguments is the text that the model wrote where the library
        keeps it, else the value.

A conversation that fails answers {"error": TEXT}. The process ends with its input.
"""

import json
import sys

import anthropic
import openai
from google import genai
from google.genai import types

OBJECT = {"type": "object"}


class Chat:
    """OpenAI chat completions. The library's own accumulator puts a stream together."""

    def __init__(self, o):
        self.client = openai.OpenAI(base_url=o["base"], api_key="k", max_retries=0)
        self.tools = [{"type": "function", "function": {"name": n, "parameters": OBJECT}} for n in o["tools"]]
        self.log = [{"role": "system", "content": o["system"]}, {"role": "user", "content": o["prompt"]}]

    def ask(self, results, stream):
        self.log += [{"role": "tool", "tool_call_id": r["id"], "content": r["text"]} for r in results]
        asked = {"model": "m", "messages": self.log, "tools": self.tools, "max_completion_tokens": 1000}
        whole = self.streamed(asked) if stream else self.client.chat.completions.create(**asked)
        (choice,) = whole.choices
        message = choice.message
        self.log.append(message.model_dump(exclude_unset=True))
        return {
            "text": message.content or "",
            "calls": [called(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or []],
            "stop": choice.finish_reason,
            "input": whole.usage.prompt_tokens,
            "output": whole.usage.completion_tokens,
            "cached": whole.usage.prompt_tokens_details.cached_tokens,
        }

    def streamed(self, asked):
        with self.client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
            for _ in events:
                pass
            return events.current_completion_snapshot


class Responses:
    """OpenAI Responses, with nothing stored."""

    def __init__(self, o):
        self.client = openai.OpenAI(base_url=o["base"], api_key="k", max_retries=0)
        self.tools = [{"type": "function", "name": n, "parameters": OBJECT, "strict": False} for n in o["tools"]]
        self.system, self.log = o["system"], [{"role": "user", "content": o["prompt"]}]

    def ask(self, results, stream):
        self.log += [{"type": "function_call_output", "call_id": r["id"], "output": r["text"]} for r in results]
        asked = {
            "model": "m", "instructions": self.system, "input": self.log, "tools": self.tools,
            "max_output_tokens": 1000, "store": False, "include": ["reasoning.encrypted_content"],
        }
        whole = self.streamed(asked) if stream else self.client.responses.create(**asked)
        self.log += [item.model_dump(exclude_unset=True) for item in whole.output]
        details = whole.incomplete_details
        return {
            "text": whole.output_text,
            "calls": [called(c.call_id, c.name, c.arguments) for c in whole.output if c.type == "function_call"],
            "stop": details.reason if details and details.reason else whole.status,
            "input": whole.usage.input_tokens,
            "output": whole.usage.output_tokens,
            "cached": whole.usage.input_tokens_details.cached_tokens,
        }

    def streamed(self, asked):
        whole, text, arguments = None, "", ""
        for event in self.client.responses.create(**asked, stream=True):
            if event.type == "response.output_text.delta":
                text += event.delta
            elif event.type == "response.function_call_arguments.delta":
                arguments += event.delta
            elif event.type in ("response.completed", "response.incomplete"):
                whole = event.response
        said = "".join(c.arguments for c in whole.output if c.type == "function_call")
        if (text, arguments) != (whole.output_text, said):
            raise ValueError("the pieces are not those of the response")
        return whole


class Messages:
    """Anthropic messages. The library has arguments as values only."""

    def __init__(self, o):
        self.client = anthropic.Anthropic(base_url=o["base"], api_key="k", max_retries=0)
        self.tools = [{"name": n, "input_schema": OBJECT} for n in o["tools"]]
        self.system, self.log = o["system"], [{"role": "user", "content": o["prompt"]}]

    def ask(self, results, stream):
        blocks = [{"type": "tool_result", "tool_use_id": r["id"], "content": r["text"], "is_error": r["failed"]} for r in results]
        if blocks:
            self.log.append({"role": "user", "content": blocks})
        asked = {"model": "m", "max_tokens": 1000, "system": self.system, "messages": self.log, "tools": self.tools}
        if stream:
            with self.client.messages.stream(**asked) as events:
                whole = events.get_final_message()
        else:
            whole = self.client.messages.create(**asked)
        self.log.append({"role": "assistant", "content": whole.content})
        used = whole.usage
        return {
            "text": "".join(b.text for b in whole.content if b.type == "text"),
            "calls": [called(b.id, b.name, b.input) for b in whole.content if b.type == "tool_use"],
            "stop": whole.stop_reason,
            "input": used.input_tokens + used.cache_creation_input_tokens + used.cache_read_input_tokens,
            "output": used.output_tokens,
            "cached": used.cache_read_input_tokens,
        }


class Generated:
    """Gemini. The library has arguments as values only. Its Chat would send the empty text that
    ends a stream back, which the API refuses (54xzh/FLIT#69, pydantic-ai#568), so the
    conversation is kept here: the contents are those of the library, without empty texts.
    """

    def __init__(self, o):
        self.client = genai.Client(api_key="k", vertexai=False, http_options=types.HttpOptions(base_url=o["base"]))
        self.log = [types.UserContent(parts=[types.Part(text=o["prompt"])])]
        self.config = types.GenerateContentConfig(
            system_instruction=o["system"], max_output_tokens=1000,
            tools=[types.Tool(function_declarations=[types.FunctionDeclaration(name=n, parameters=types.Schema(type="OBJECT")) for n in o["tools"]])],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )

    def ask(self, results, stream):
        parts = [
            types.Part(function_response=types.FunctionResponse(id=r["id"] or None, name=r["name"], response={"error" if r["failed"] else "output": r["text"]}))
            for r in results
        ]
        if parts:
            self.log.append(types.UserContent(parts=parts))
        asked = {"model": "m", "contents": list(self.log), "config": self.config}
        chunks = self.client.models.generate_content_stream(**asked) if stream else [self.client.models.generate_content(**asked)]
        read = {"text": "", "calls": [], "stop": "", "input": 0, "output": 0, "cached": 0}
        for chunk in chunks:
            used = chunk.usage_metadata
            if used:
                read["input"] = used.prompt_token_count or 0
                read["output"] = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
                read["cached"] = used.cached_content_token_count or 0
            (candidate,) = chunk.candidates
            if candidate.finish_reason:
                read["stop"] = candidate.finish_reason.value
            parts = [part for part in candidate.content.parts if part != types.Part(text="")]
            if parts:
                self.log.append(types.ModelContent(parts=parts))
            for part in parts:
                if part.text and not part.thought:
                    read["text"] += part.text
                if part.function_call:
                    c = part.function_call
                    read["calls"].append(called(c.id or "", c.name, c.args))
        return read


LIBRARIES = {"openai": Chat, "responses": Responses, "anthropic": Messages, "gemini": Generated}


def called(id, name, arguments):
    return {"id": id, "name": name, "arguments": arguments}


def main():
    conversation = None
    for line in sys.stdin:
        o = json.loads(line)
        try:
            if "open" in o:
                conversation, answer = LIBRARIES[o["open"]](o), {}
            else:
                answer = conversation.ask(o["results"], o["stream"])
        except Exception as e:  # of any library: the test names it
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


main()
