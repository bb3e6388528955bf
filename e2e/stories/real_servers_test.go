package stories

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/e2e/fabric"
)

func TestFourPublicServersRunInACustomWorkerImage(t *testing.T) {
	f := sharedFabric(t)
	c := caller(t, f, f.URL())
	made, err := fabric.Build(t.Context(), all.source, "node")
	must(t, err)
	// As described in docs/how-to/deployment.md: the worker is copied into an image with Node.js.
	const image = "callyard-stories/worker-node:local"
	must(t, fabric.BuildFrom(t.Context(), image, `FROM `+made["node"]+`
COPY --from=`+f.Images["worker"]+` /worker /worker
COPY --from=`+f.Images["worker"]+` /etc /etc
USER 65532:65532
ENV HOME=/tmp
ENTRYPOINT ["/worker"]
`, nil))
	papers := filepath.Join(all.effects, "papers")
	must(t, os.Mkdir(papers, 0o755))
	must(t, os.WriteFile(filepath.Join(papers, "note.txt"), []byte("in the safe place\n"), 0o644))

	at := "/server/node_modules/@modelcontextprotocol/server-"
	server := func(env map[string]string, args ...string) map[string]any {
		return map[string]any{"command": "/bin/node", "args": args, "env": env, "sessions": 1}
	}
	w, err := f.AddWorker(t.Context(), fabric.Worker{
		Image: image, Mounts: []string{papers + ":/papers:ro"}, Env: map[string]string{"CALLYARD_WORKER_START_TIMEOUT": "2m"},
		Servers: fabric.Servers{
			"everything": server(nil, at+"everything/dist/index.js", "stdio"),
			"filesystem": server(nil, at+"filesystem/dist/index.js", "/papers"),
			"memory":     server(map[string]string{"MEMORY_FILE_PATH": "/tmp/memory.jsonl"}, at+"memory/dist/index.js"),
			"thinking":   server(nil, at+"sequential-thinking/dist/index.js"),
		},
	})
	must(t, err)
	defer func() { must(t, w.Stop(t.Context(), time.Minute)) }()

	for _, s := range []struct {
		server, tool string
		arguments    map[string]any
		says         string
	}{
		{"everything", "get-sum", map[string]any{"a": 2, "b": 40}, "42"},
		{"filesystem", "read_text_file", map[string]any{"path": "/papers/note.txt"}, "in the safe place"},
		{"memory", "create_entities", map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"wrote the first program"}}}}, "Ada"},
		{"memory", "search_nodes", map[string]any{"query": "program"}, "Ada"},
		{"thinking", "sequentialthinking", map[string]any{"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}, "thoughtHistoryLength"},
	} {
		if got := resultText(t, calls(t, c, s.server, s.tool, s.arguments)); !strings.Contains(got, s.says) {
			t.Errorf("%s of %s says %q", s.tool, s.server, got)
		}
	}
}
