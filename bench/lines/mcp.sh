callyard up --servers mcp.json
callyard call search add '{"a": 1, "b": 2}'
