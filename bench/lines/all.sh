callyard up --servers all.json
callyard call shop add '{"body": {"a": 1, "b": 2}}'
callyard call search add '{"a": 1, "b": 2}'
