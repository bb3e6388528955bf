package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/kit/urls"
)

// mcpCommand returns the commands for MCP clients.
func mcpCommand() *cobra.Command {
	var server string
	stdio := &cobra.Command{
		Use:   "stdio",
		Short: "Run an MCP server on stdin and stdout, backed by a running Callyard",
		Long: "stdio forwards the messages of one MCP client to a running Callyard unchanged, and returns its answers. " +
			"It serves the tools of all servers, or with --server those of one server under their own names.",
		Example: "  callyard mcp stdio --server files",
		Args:    takes(0, 0),
		RunE: withClient(func(ctx context.Context, c *client, _ []string) error {
			return newBridge(c, server, c.out.w, c.note.w).run(ctx, c.in)
		}),
	}
	stdio.Flags().StringVar(&server, "server", "", "server whose tools are served; empty serves all")
	var to string
	config := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration entry of an MCP client",
		Long: "config prints the entry that connects an MCP client to Callyard. An API key is not printed: " +
			"the entry for HTTP refers to the variable CALLYARD_KEY, and the entry for stdio reads it from the environment.",
		Example: "  callyard mcp config --client cursor",
		Args:    takes(0, 0),
		RunE: withClient(func(_ context.Context, c *client, _ []string) error {
			text, err := clientConfig(to, c.base+mountPath(server), server, c.base, c.key != "")
			if err != nil {
				return err
			}
			if c.out.structured() {
				return c.out.value(map[string]string{"client": to, "url": c.base + mountPath(server), "configuration": text})
			}
			return c.out.text(text)
		}),
	}
	config.Flags().StringVar(&to, "client", "", "the client: "+strings.Join(mcpClients(), ", "))
	config.Flags().StringVar(&server, "server", "", "server whose tools are served; empty serves all")
	completingFlag(stdio, "server", serverIDs)
	completingFlag(config, "server", serverIDs)
	offer(config, "client", mcpClients()...)
	return group("mcp", "Connect MCP clients to a running Callyard", stdio, config)
}

func mountPath(server string) string {
	if server == "" {
		return "/mcp"
	}
	return "/mcp/" + urls.Segment(server)
}

func mcpClients() []string { return []string{"claude", "claude-code", "codex", "cursor", "vscode"} }

// entryHTTP is the configuration entry of an MCP server over HTTP.
type entryHTTP struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
}

// entryStdio is the configuration entry of an MCP server that the client starts.
type entryStdio struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

// clientConfig returns the configuration text for a client, with a note on its location.
func clientConfig(to, address, server, base string, keyed bool) (string, error) {
	name := "callyard"
	if server != "" {
		name = "callyard-" + server
	}
	bearer := func(variable string) map[string]string {
		if !keyed {
			return nil
		}
		return map[string]string{"Authorization": "Bearer " + variable}
	}
	servers := func(member string, entry any) string {
		text, err := json.MarshalIndent(map[string]any{member: map[string]any{name: entry}}, "", "  ")
		if err != nil {
			return "" // strings always encode
		}
		return string(text) + "\n"
	}
	switch to {
	case "cursor": // ~/.cursor/mcp.json
		return servers("mcpServers", entryHTTP{URL: address, Headers: bearer("${env:CALLYARD_KEY}")}), nil
	case "vscode": // .vscode/mcp.json
		return servers("servers", entryHTTP{Type: "http", URL: address, Headers: bearer("${env:CALLYARD_KEY}")}), nil
	case "claude": // claude_desktop_config.json starts programs
		command, err := os.Executable()
		if err != nil {
			command = "callyard"
		}
		entry := entryStdio{Command: command, Args: []string{"mcp", "stdio", "--url", base}}
		if server != "" {
			entry.Args = append(entry.Args, "--server", server)
		}
		if keyed {
			entry.Env = map[string]string{"CALLYARD_KEY_FILE": "/path/to/a/file/with/the/key"}
		}
		return servers("mcpServers", entry), nil
	case "claude-code":
		text := "claude mcp add --transport http " + name + " " + address
		if keyed {
			text += ` --header "Authorization: Bearer $CALLYARD_KEY"`
		}
		return text + "\n", nil
	case "codex": // ~/.codex/config.toml
		text := fmt.Sprintf("[mcp_servers.%q]\nurl = %q\n", name, address)
		if keyed {
			text += "bearer_token_env_var = \"CALLYARD_KEY\"\n"
		}
		return text, nil
	}
	return "", fail(exitUsage, "--client must be one of %s.", strings.Join(mcpClients(), ", "))
}
