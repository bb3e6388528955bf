package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/kit/bom"
)

// addedEntry holds the flags of `servers add`, with the keys of a servers file.
type addedEntry struct {
	ID        string            `json:"id"`
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	URL       string            `json:"url,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	RiskLevel int               `json:"riskLevel,omitempty"`
}

func addServerCommand() *cobra.Command {
	var entry addedEntry
	var env []string
	var file string
	cmd := &cobra.Command{
		Use:   "add SERVER (-- COMMAND [ARG...] | --server-url URL | --entry FILE)",
		Short: "Add a server to a running Callyard",
		Long: "add adds a server to the workers that allow it (worker.api_servers), also after restarts, and waits until it can be called. It requires front_door.add_servers: " +
			"a caller that can add a server can start any command on a worker.\n\n" +
			"An added server is stored in NATS, not in a servers file, and is removed with `servers remove`. If operators manage the servers, add an entry to the servers file instead: " +
			"its worker reloads the file automatically. A name can be used in only one of the two places.",
		Example: "  callyard servers add files -- mcp-server-filesystem /srv/files\n  callyard servers add search --server-url https://search.example.com/mcp --risk 2\n" +
			"  callyard servers add notes --entry notes.json",
		Args: takes(1, -1),
	}
	flags := cmd.Flags()
	flags.StringVar(&entry.URL, "server-url", "", "URL of an HTTP server")
	flags.StringArrayVar(&env, "env", nil, "environment variable NAME=VALUE for the command; repeatable")
	flags.IntVar(&entry.RiskLevel, "risk", 0, "riskLevel of the server, 1 to 3")
	flags.StringVar(&file, "entry", "", "file with the whole entry as in a servers file, without its name (- means standard input)")
	cmd.RunE = withClient(func(ctx context.Context, c *client, args []string) error {
		entry.ID = args[0]
		if len(args) > 1 {
			entry.Command, entry.Args = args[1], args[2:]
		}
		if given := countTrue(entry.Command != "", entry.URL != "", file != ""); given != 1 {
			return fail(exitUsage, "Pass one of: a command after --, --server-url, or --entry.")
		}
		body, err := untilInterrupt(ctx, func() ([]byte, error) { return entry.body(env, file, c.in) })
		if err != nil {
			return err
		}
		return showStatus(ctx, c, with2(c.api.AddServerWithBody, mediaJSON, content(body)), entry.ID)
	})
	return cmd
}

func countTrue(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// body returns the body of the request that adds the entry.
func (e *addedEntry) body(env []string, file string, stdin io.Reader) ([]byte, error) {
	for _, pair := range env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fail(exitUsage, "--env must have the form NAME=VALUE.") // do not repeat the value, which may be a secret
		}
		if e.Env == nil {
			e.Env = make(map[string]string)
		}
		e.Env[name] = value
	}
	if file == "" {
		return json.Marshal(e)
	}
	if e.Env != nil || e.RiskLevel != 0 {
		return nil, fail(exitUsage, "--entry has the whole entry: set env and riskLevel there.")
	}
	text, err := readInput(file, stdin, math.MaxInt32)
	if err != nil {
		return nil, fail(exitUsage, "--entry: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(bom.Trim(text), &members); err != nil || members == nil {
		return nil, fail(exitUsage, "--entry: %s is not a JSON object; use an entry such as {\"command\": \"…\"}.", file)
	}
	if members["id"], err = json.Marshal(e.ID); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// showStatus sends a request that changes the object with the id, and prints its new state.
func showStatus(ctx context.Context, c *client, q request, id string) error {
	return show(ctx, c, q, func(s *struct{ Status string }) error {
		if s.Status == "" {
			return c.foreign()
		}
		return c.out.text(fmt.Sprintf("%s is %s\n", oneLine(id), oneLine(s.Status)))
	})
}
