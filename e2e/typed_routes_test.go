package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// typedCall is a call of a tool through a typed method of a generated client.
type typedCall struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Operation string          `json:"operation"`
	Arguments json.RawMessage `json:"arguments"`

	status int
	want   string // in the response
}

// typedCalls calls each tool of the reference servers once, in this order, because some modify
// data that others read. DIR is a folder that the filesystem server may write.
func typedCalls(dir string) []typedCall {
	const ok, asks, fails = http.StatusOK, http.StatusConflict, http.StatusBadGateway
	var calls []typedCall
	for _, c := range []struct {
		server, tool, arguments string
		status                  int
		want                    string
	}{
		{"conformance", "json_schema_2020_12_tool", `{"name":"Ada","address":{"street":"1 Main St","city":"Rome"},"contactMethod":"email","email":"ada@example.org"}`, ok, "ada@example.org"},
		{"conformance", "test_audio_content", `{}`, ok, "audio/wav"},
		{"conformance", "test_elicitation", `{"message":"m"}`, ok, "elicitation failed"},
		{"conformance", "test_elicitation_sep1034_defaults", `{}`, ok, "elicitation failed"},
		{"conformance", "test_elicitation_sep1330_enums", `{}`, ok, "elicitation failed"},
		{"conformance", "test_embedded_resource", `{}`, ok, "test://embedded-resource"},
		{"conformance", "test_error_handling", `{}`, ok, "intentionally returns an error"},
		{"conformance", "test_image_content", `{}`, ok, "image/png"},
		{"conformance", "test_input_required_result_capabilities", `{}`, ok, "No declared client capability"},
		{"conformance", "test_input_required_result_elicitation", `{}`, asks, "requires more input"},
		{"conformance", "test_input_required_result_list_roots", `{}`, asks, "requires more input"},
		{"conformance", "test_input_required_result_multi_round", `{}`, asks, "requires more input"},
		{"conformance", "test_input_required_result_multiple_inputs", `{}`, asks, "requires more input"},
		{"conformance", "test_input_required_result_request_state", `{}`, asks, "requires more input"},
		{"conformance", "test_input_required_result_sampling", `{}`, asks, "requires more input"},
		{"conformance", "test_input_required_result_tampered_state", `{}`, asks, "requires more input"},
		{"conformance", "test_logging_tool", `{}`, ok, "Log attempted"},
		{"conformance", "test_missing_capability", `{}`, fails, "-32021"},
		{"conformance", "test_multiple_content_types", `{}`, ok, "This is text content"},
		{"conformance", "test_reconnection", `{}`, ok, "Reconnection test completed"},
		{"conformance", "test_sampling", `{"prompt":"p"}`, ok, "sampling failed"},
		{"conformance", "test_simple_text", `{}`, ok, "simple text response"},
		{"conformance", "test_streaming_elicitation", `{}`, ok, "stream observed"},
		{"conformance", "test_tool_with_logging", `{}`, ok, "executed successfully"},
		{"conformance", "test_tool_with_progress", `{}`, ok, "nil"},
		{"conformance", "test_trigger_prompt_change", `{}`, ok, "prompts_list_changed"},
		{"conformance", "test_trigger_tool_change", `{}`, ok, "tools_list_changed"},
		{"conformance", "test_x_mcp_header", `{"region":"eu","level":1}`, ok, "region=eu"},

		{"everything", "echo", `{"message":"good evening"}`, ok, "Echo: good evening"},
		{"everything", "get-annotated-message", `{"messageType":"success"}`, ok, "completed successfully"},
		{"everything", "get-env", `{}`, ok, "PATH"},
		{"everything", "get-resource-links", `{"count":2}`, ok, "demo://resource/dynamic/blob/1"},
		{"everything", "get-resource-reference", `{"resourceType":"Text","resourceId":7}`, ok, "demo://resource/dynamic/text/7"},
		{"everything", "get-structured-content", `{"location":"Chicago"}`, ok, `"temperature":36`},
		{"everything", "get-sum", `{"a":2,"b":40}`, ok, "42"},
		{"everything", "get-tiny-image", `{}`, ok, "image/png"},
		{"everything", "gzip-file-as-resource", `{"name":"a.gz","data":"data:text/plain;base64,aGVsbG8=","outputType":"resource"}`, ok, "application/gzip"},
		{"everything", "simulate-research-query", `{"topic":"x"}`, ok, "requires task augmentation"},
		{"everything", "toggle-simulated-logging", `{}`, ok, "simulated"},
		{"everything", "toggle-subscriber-updates", `{}`, ok, "simulated resource update"},
		{"everything", "trigger-long-running-operation", `{"duration":0.1,"steps":1}`, ok, "Long running operation completed"},

		{"filesystem", "list_allowed_directories", `{}`, ok, "Allowed directories"},
		{"filesystem", "create_directory", `{"path":"DIR"}`, ok, "Successfully created directory DIR"},
		{"filesystem", "write_file", `{"path":"DIR/a.txt","content":"one\ntwo\n"}`, ok, "Successfully wrote to DIR/a.txt"},
		{"filesystem", "edit_file", `{"path":"DIR/a.txt","edits":[{"oldText":"two","newText":"three"}]}`, ok, "+three"},
		{"filesystem", "read_text_file", `{"path":"DIR/a.txt"}`, ok, `one\nthree\n`},
		{"filesystem", "read_file", `{"path":"DIR/a.txt","head":1}`, ok, `"text":"one"`},
		{"filesystem", "read_media_file", `{"path":"DIR/a.txt"}`, ok, "b25lCnRocmVlCg=="},
		{"filesystem", "read_multiple_files", `{"paths":["DIR/a.txt"]}`, ok, `DIR/a.txt:\none\nthree\n`},
		{"filesystem", "get_file_info", `{"path":"DIR/a.txt"}`, ok, "size: 10"},
		{"filesystem", "list_directory", `{"path":"DIR"}`, ok, "[FILE] a.txt"},
		{"filesystem", "list_directory_with_sizes", `{"path":"DIR","sortBy":"size"}`, ok, "Total: 1 files, 0 directories"},
		{"filesystem", "directory_tree", `{"path":"DIR","excludePatterns":[]}`, ok, "a.txt"},
		{"filesystem", "search_files", `{"path":"DIR","pattern":"*.txt"}`, ok, "DIR/a.txt"},
		{"filesystem", "move_file", `{"source":"DIR/a.txt","destination":"DIR/b.txt"}`, ok, "Successfully moved DIR/a.txt to DIR/b.txt"},

		{"memory", "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["writes programs"]}]}`, ok, "writes programs"},
		{"memory", "add_observations", `{"observations":[{"entityName":"Ada","contents":["plays chess"]}]}`, ok, "plays chess"},
		{"memory", "create_relations", `{"relations":[{"from":"Ada","to":"Ada","relationType":"knows"}]}`, ok, "knows"},
		{"memory", "read_graph", `{}`, ok, "plays chess"},
		{"memory", "search_nodes", `{"query":"chess"}`, ok, "writes programs"},
		{"memory", "open_nodes", `{"names":["Ada"]}`, ok, "writes programs"},
		{"memory", "delete_relations", `{"relations":[{"from":"Ada","to":"Ada","relationType":"knows"}]}`, ok, "Relations deleted"},
		{"memory", "delete_observations", `{"deletions":[{"entityName":"Ada","observations":["plays chess"]}]}`, ok, "Observations deleted"},
		{"memory", "delete_entities", `{"entityNames":["Ada"]}`, ok, "Entities deleted"},

		{"thinking", "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, ok, `"thoughtNumber":1`},
	} {
		in := strings.NewReplacer("DIR", dir)
		calls = append(calls, typedCall{c.server, c.tool, c.server + "__" + c.tool, json.RawMessage(in.Replace(c.arguments)), c.status, in.Replace(c.want)})
	}
	return calls
}

// typedDocument is the part of the document of a server or a set that is used.
type typedDocument struct {
	Paths      map[string]json.RawMessage
	Components struct{ Schemas map[string]json.RawMessage }
}

// typedDocuments writes the documents of the servers and of the set into a folder, checks them,
// and returns the path of the set's document, which has the operations and the schemas of the
// servers.
func typedDocuments(t *testing.T, up *door, servers []string, set string) string {
	t.Helper()
	folder := t.TempDir()
	fetch := func(path, name string) (file string, document typedDocument) {
		raw := up.get(t, path)
		if err := json.Unmarshal(raw, &document); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		file = filepath.Join(folder, name+".json")
		write(t, file, string(raw))
		return file, document
	}
	whole, of := fetch("/sets/"+set+"/openapi.json", "set")
	files, paths, schemas := []string{whole}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, server := range servers {
		file, d := fetch("/servers/"+server+"/openapi.json", server)
		files = append(files, file)
		maps.Copy(paths, d.Paths)
		maps.Copy(schemas, d.Components.Schemas)
	}
	if diff := cmp.Diff(paths, of.Paths) + cmp.Diff(schemas, of.Components.Schemas); diff != "" {
		t.Errorf("operations and schemas (-of the servers +of the set):\n%s", diff)
	}
	said := outputOf(t, nil, filepath.Join(programs.root, ".cache/python/bin/python"), append([]string{"-m", "openapi_spec_validator", "--schema", "3.1"}, files...)...)
	if got := strings.Count(said, ": OK\n"); got != len(files) {
		t.Errorf("openapi-spec-validator finds %d of %d documents valid:\n%s", got, len(files), said)
	}
	redocly := []string{filepath.Join(programs.root, "tools/npm/node_modules/@redocly/cli/bin/cli.js"), "lint", "--extends=recommended", "--skip-rule=no-required-schema-properties-undefined", "--format=stylish"}
	said = outputOf(t, []string{"REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "REDOCLY_TELEMETRY=off", "CI=true"}, "node", append(redocly, files...)...)
	if !strings.Contains(said, "valid") || strings.Contains(said, "You have") {
		t.Errorf("redocly says:\n%s", said)
	}
	return whole
}

// plainName returns the part of an operation's name that all generators keep.
func plainName(name string) string {
	return regexp.MustCompile(`[^a-z0-9]`).ReplaceAllString(strings.ToLower(name), "")
}

// typedGo generates the client for Go and builds a program with it. It returns the command line.
func typedGo(t *testing.T, document string, calls []typedCall) []string {
	dir, clients := t.TempDir(), filepath.Join(programs.root, "clients/go")
	for name, from := range map[string]string{"go.mod": filepath.Join(clients, "go.mod"), "go.sum": filepath.Join(clients, "go.sum"), "main.go": typedSource("main.go")} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), strings.Replace(string(text), "module github.com/callyard/callyard/clients/go", "module tools.test", 1))
	}
	client := filepath.Join(dir, "tools", "client.gen.go")
	if err := os.Mkdir(filepath.Dir(client), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "oapi-codegen.yaml"), "package: tools\ngenerate: {models: true, client: true}\ncompatibility: {always-prefix-enum-values: true}\n")
	outputOf(t, nil, "go", "-C", clients, "tool", "-modfile="+filepath.Join(programs.root, "tools/oapi/go.mod"), "oapi-codegen", "-config", filepath.Join(dir, "oapi-codegen.yaml"), "-o", client, document)
	text, err := os.ReadFile(client)
	if err != nil {
		t.Fatal(err)
	}
	methods := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^type (\w+)JSONRequestBody\b`).FindAllSubmatch(text, -1) {
		methods[plainName(string(m[1]))] = string(m[1])
	}
	var b bytes.Buffer
	b.WriteString("package main\n\nimport (\n\t\"context\"\n\n\t\"tools.test/tools\"\n)\n\nfunc calls(ctx context.Context, c *tools.ClientWithResponses) {\n")
	for _, c := range calls {
		method := methods[plainName(c.Operation)]
		if method == "" {
			t.Fatalf("the client has no method for %s", c.Operation)
		}
		fmt.Fprintf(&b, "\t{\n\t\tr, err := c.%[1]sWithResponse(ctx, nil, into(%[2]q, new(tools.%[1]sJSONRequestBody)))\n\t\tcheck(err)\n\t\tsaid(r.HTTPResponse, r.JSON200, r.Body)\n\t}\n", method, c.Arguments)
	}
	b.WriteString("}\n")
	write(t, filepath.Join(dir, "calls.go"), b.String())
	outputOf(t, nil, "go", "-C", dir, "build", "-o", filepath.Join(dir, "story"), ".")
	return []string{filepath.Join(dir, "story")}
}

// typedTypeScript is typedGo for TypeScript. The compiler checks the arguments with the schemas.
func typedTypeScript(t *testing.T, document string, calls []typedCall) []string {
	dir, modules := t.TempDir(), filepath.Join(programs.root, "clients/typescript/node_modules")
	// A member with a default value is optional in a call.
	outputOf(t, nil, "node", filepath.Join(modules, "openapi-typescript/bin/cli.js"), document, "--default-non-nullable=false", "--output", filepath.Join(dir, "tools.ts"))
	var b bytes.Buffer
	b.WriteString("import type { Client } from \"openapi-fetch\";\n\nimport type { paths } from \"./tools.js\";\n\n" +
		"type Said = (asked: Promise<{ data?: unknown; error?: unknown; response: Response }>) => Promise<void>;\n\nexport const calls = async (client: Client<paths>, said: Said) => {\n")
	for _, c := range calls {
		fmt.Fprintf(&b, "  await said(client.POST(%q, { body: %s }));\n", toolPath(c.Server, c.Tool), c.Arguments)
	}
	b.WriteString("};\n")
	write(t, filepath.Join(dir, "calls.ts"), b.String())
	story, err := os.ReadFile(typedSource("story.ts"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "story.ts"), string(story))
	write(t, filepath.Join(dir, "package.json"), `{"type":"module"}`)
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	outputOf(t, nil, "node", filepath.Join(modules, "typescript/bin/tsc"), "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--typeRoots", filepath.Join(modules, "@types"), "--types", "node",
		"--rootDir", dir, "--outDir", dir, filepath.Join(dir, "story.ts"))
	return []string{"node", filepath.Join(dir, "story.js")}
}

// typedPython is typedGo for Python.
func typedPython(t *testing.T, document string, calls []typedCall) []string {
	dir, python := t.TempDir(), filepath.Join(programs.root, ".cache/python/bin")
	outputOf(t, []string{"PATH=" + python + string(filepath.ListSeparator) + os.Getenv("PATH")}, filepath.Join(python, "openapi-python-client"), "generate", "--path", document,
		"--meta", "none", "--fail-on-warning", "--output-path", filepath.Join(dir, "tools"))
	if _, err := os.Stat(typedSource("story.py")); err != nil { // tells the go command that the result depends on it
		t.Fatal(err)
	}
	todo, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "calls.json"), string(todo))
	// The generator's common client code does not pass in strict mode.
	outputOf(t, []string{"MYPYPATH=" + dir}, filepath.Join(python, "python"), "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir=/dev/null", typedSource("story.py"))
	return []string{"env", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + dir, filepath.Join(python, "python"), typedSource("story.py"), filepath.Join(dir, "calls.json")}
}

func typedSource(name string) string {
	return filepath.Join(programs.root, "e2e", "testdata", "typed", name)
}

// Documents of the reference servers pass both validators. Clients that are generated from
// them have a method for each tool, which calls it and decodes its result.
func TestGeneratedClientsCallEachToolOfTheReferenceServers(t *testing.T) {
	t.Parallel()
	servers, folder := realServers(t)
	up := startUp(t, setup{servers: serversFile(t, servers), env: []string{quickStop}})
	up.waitServers(t, 1, keys(servers)...)
	if a := up.ask(t, http.MethodPut, "/sets/reference", `{"include":[{}]}`, "If-None-Match: *"); a.status/100 != 2 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	document := typedDocuments(t, up, keys(servers), "reference")
	var all []string
	for id := range servers {
		for _, raw := range up.list(t, id, "tools") {
			var tool struct{ Name string }
			if err := json.Unmarshal(raw, &tool); err != nil {
				t.Fatal(err)
			}
			all = append(all, id+"__"+tool.Name)
		}
	}
	var turn sync.Mutex // the memory server loses concurrent changes
	for name, prepare := range map[string]func(*testing.T, string, []typedCall) []string{"go": typedGo, "typescript": typedTypeScript, "python": typedPython} {
		calls := typedCalls(filepath.Join(folder, name))
		var called []string
		for _, c := range calls {
			called = append(called, c.Operation)
		}
		slices.Sort(all)
		slices.Sort(called)
		if diff := cmp.Diff(all, called); diff != "" {
			t.Fatalf("tools (-of the servers +that are called):\n%s", diff)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := prepare(t, document, calls)
			turn.Lock()
			defer turn.Unlock()
			said := strings.Split(strings.TrimSpace(outputOf(t, []string{"CALLYARD_URL=" + up.url, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}, command[0], command[1:]...)), "\n")
			if len(said) != 1+len(calls) || !regexp.MustCompile(`^33(\.0)? Cloudy$`).MatchString(said[0]) {
				t.Fatalf("%d lines for %d calls:\n%s", len(said), len(calls), strings.Join(said, "\n"))
			}
			for i, c := range calls {
				var got struct {
					Status int
					Answer any
				}
				if err := json.Unmarshal([]byte(said[i+1]), &got); err != nil {
					t.Fatalf("%v: %s", err, said[i+1])
				}
				if answer, _ := json.Marshal(got.Answer); got.Status != c.status || !strings.Contains(string(answer), c.want) {
					t.Errorf("%s: %d %.500s, want %d and %s", c.Operation, got.Status, answer, c.status, c.want)
				}
			}
		})
	}
}
