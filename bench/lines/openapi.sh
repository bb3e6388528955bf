callyard up --servers openapi.json
callyard call shop add '{"body": {"a": 1, "b": 2}}'
