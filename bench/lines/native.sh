callyard call math add '{"A": 1, "B": 2}'
