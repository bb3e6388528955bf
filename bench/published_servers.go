package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// operation is one of the six of the published benchmark.
type operation struct {
	server, tool string
	arguments    json.RawMessage
}

func (o *operation) name() string { return o.server + " " + o.tool }

func (o *operation) request() httpRequest {
	return httpRequest{"POST", "/servers/" + o.server + "/tools/" + o.tool, o.arguments}
}

// reference is one of the four reference servers.
type reference struct {
	Command   string            `json:"command"`
	Args      []string          `json:"args"`
	Env       map[string]string `json:"env,omitempty"`
	RiskLevel int               `json:"riskLevel"`
}

// graphNodes is the number of entities that the memory server has initially.
const graphNodes = 200

// references returns the four servers by name and the six operations on them. Their
// files are below dir.
func references(root, dir string) (map[string]reference, []operation, error) {
	packages := filepath.Join(root, "e2e", "servers", "node_modules", "@modelcontextprotocol")
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, nil, errors.New("node is not in PATH; install it")
	}
	files, graph := filepath.Join(dir, "files"), filepath.Join(dir, "graph.jsonl")
	if err := referenceFiles(files, graph); err != nil {
		return nil, nil, err
	}
	servers := make(map[string]reference, 4)
	for name, more := range map[string]reference{
		"everything":          {Args: []string{"stdio"}},
		"filesystem":          {Args: []string{files}},
		"memory":              {Env: map[string]string{"MEMORY_FILE_PATH": graph}},
		"sequential-thinking": {Env: map[string]string{"DISABLE_THOUGHT_LOGGING": "true"}},
	} {
		script := filepath.Join(packages, "server-"+name, "dist", "index.js")
		if _, err := os.Stat(script); err != nil {
			return nil, nil, fmt.Errorf("the %s server is not installed; run `npm ci` in e2e/servers", name)
		}
		more.Command, more.RiskLevel = node, 1
		more.Args = append([]string{script}, more.Args...)
		servers[name] = more
	}
	return servers, []operation{
		{"everything", "echo", json.RawMessage(`{"message":"` + strings.Repeat("hello ", 30) + `"}`)},
		{"filesystem", "list_directory", fmt.Appendf(nil, `{"path":%q}`, files)},
		{"filesystem", "read_text_file", fmt.Appendf(nil, `{"path":%q}`, filepath.Join(files, "file-0.txt"))},
		{"memory", "create_entities", json.RawMessage(`{"entities":[{"name":"entity-0","entityType":"thing","observations":["known"]}]}`)},
		{"memory", "search_nodes", json.RawMessage(`{"query":"entity-17"}`)},
		{"sequential-thinking", "sequentialthinking", json.RawMessage(`{"thought":"one step","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`)},
	}, nil
}

// referenceFiles writes the files that the file system server lists and reads, and the graph
// of the memory server.
func referenceFiles(files, graph string) error {
	if err := os.MkdirAll(files, 0o700); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	for i := range 10 {
		name := filepath.Join(files, fmt.Sprintf("file-%d.txt", i))
		if err := os.WriteFile(name, []byte(strings.Repeat("a line of text\n", 70)), 0o600); err != nil {
			return fmt.Errorf("writing a file to read: %w", err)
		}
	}
	var lines strings.Builder
	for i := range graphNodes {
		fmt.Fprintf(&lines, `{"type":"entity","name":"entity-%d","entityType":"thing","observations":["number %d of the graph"]}`+"\n", i, i)
	}
	if err := os.WriteFile(graph, []byte(lines.String()), 0o600); err != nil {
		return fmt.Errorf("writing the graph: %w", err)
	}
	return nil
}
