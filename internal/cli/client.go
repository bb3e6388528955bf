package cli

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/bom"
)

// clientCommands returns the commands that call the REST API of a running Callyard, and `keys`,
// which needs no Callyard. They expect the persistent flags --url, --key and --output, and return an
// [exitError] when they fail.
func clientCommands() []*cobra.Command {
	return []*cobra.Command{
		callCommand(), agentCommand(), batchCommand(), batchesCommand(), addChangeCommands(callsCommand()), toolsCommand(), usageCommand(), checkCommand(), setsCommand(), serversCommand(), workersCommand(), eventsCommand(), keysCommand(), tenantsCommand(), webhooksCommand(), stateCommand(),
	}
}

const (
	defaultURL = "http://127.0.0.1:8080"
	// connectWait limits the time to connect to the front door, answerWait the time for a response
	// that the front door serves from memory.
	connectWait = 5 * time.Second
	answerWait  = 30 * time.Second
)

// client connects one command to a front door. It is used by one goroutine and closed at the end.
type client struct {
	base string // the address of the front door, without a trailing slash
	flag string // the flag that sets base
	key  string
	// keySources names the flag and the variables that set key.
	keySources string
	in         io.Reader
	out        screen
	note       screen // stderr, for output that is not the result
	http       *http.Client
	api        *callyard.ClientWithResponses
}

// clientFrom reads the flags --url, --key and --output. For those that are not set it reads
// CALLYARD_URL, CALLYARD_KEY and CALLYARD_KEY_FILE. Its errors are usage errors.
func clientFrom(cmd *cobra.Command) (*client, error) {
	c := &client{flag: "--url", keySources: "--key, CALLYARD_KEY or CALLYARD_KEY_FILE", in: cmd.InOrStdin(), out: screenFor(cmd), note: screenOf(cmd.ErrOrStderr())}
	var err error
	if c.base, err = baseURL(cmp.Or(textFlag(cmd, "url"), os.Getenv("CALLYARD_URL"), defaultURL), "--url and CALLYARD_URL"); err != nil {
		return nil, err
	}
	if c.key, err = apiKey(cmp.Or(textFlag(cmd, "key"), os.Getenv("CALLYARD_KEY"))); err != nil {
		return nil, err
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: connectWait}).DialContext,
			TLSHandshakeTimeout: connectWait,
			ForceAttemptHTTP2:   true,
			// Results are printed verbatim, so do not let the transport decompress them.
			DisableCompression: true,
		},
		// A redirect would turn a POST into a GET, or send the key to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, c.connect()
}

// connect creates the client of the REST API for the current address and key. It sends no request.
// Call it again after either changes.
func (c *client) connect() (err error) {
	c.api, err = callyard.New(c.base, c.key, callyard.WithHTTPClient(c.http), callyard.WithRetries(0), callyard.WithRequestEditorFn(edit))
	if err != nil {
		return fail(exitUsage, "The request to %s failed: %w", c.base, err)
	}
	return nil
}

// quiet returns a client that prints no refusal: see [client.refused].
func (c *client) quiet() *client {
	q := *c
	q.out.format = formatTable
	return &q
}

func (c *client) close() { c.http.CloseIdleConnections() }

// asking is the function of a command that calls a running Callyard.
type asking func(ctx context.Context, c *client, args []string) error

// withClient adapts a function that needs a client to the RunE of a command.
func withClient(run asking) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := clientFrom(cmd)
		if err != nil {
			return err
		}
		defer c.close()
		return run(cmd.Context(), c, args)
	}
}

// textFlag returns the value of a flag that the command defines or inherits.
func textFlag(cmd *cobra.Command, name string) string {
	text, _ := cmd.Flags().GetString(name)
	return text
}

// group is a command with subcommands that shows its help when run alone.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: takes(0, 0), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

// takes checks the number of arguments. A negative most means no limit.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			if slices.Contains(args, "") { // usually from an unset variable
				return fail(exitUsage, "An argument is empty. Usage: %s", cmd.UseLine())
			}
			return nil
		}
		if most >= 0 && len(args) > most && cmd.HasAvailableSubCommands() {
			for _, show := range cmd.Commands() { // people omit the word show
				if known, _, err := cmd.Find(args[:1]); err == nil && known == cmd && show.Name() == "show" && most > 0 && show.Args(show, args) == nil {
					return fail(exitUsage, "%s takes one argument. Did you mean `%s %s`?", cmd.CommandPath(), show.CommandPath(), oneLine(strings.Join(args, " ")))
				}
			}
			return unknownCommand(cmd, args[0])
		}
		return fail(exitUsage, "The number of arguments is wrong (%d). Usage: %s", len(args), cmd.UseLine())
	}
}

// baseURL parses an address of Callyard. from names its source in errors.
func baseURL(text, from string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fail(exitUsage, "The address of Callyard must have the form http://127.0.0.1:8080: check %s.", from)
	case u.User != nil:
		return "", fail(exitUsage, "The address of Callyard must not contain a user name or password: pass an API key with --key or CALLYARD_KEY.")
	case u.RawQuery != "" || u.Fragment != "":
		return "", fail(exitUsage, "The address of Callyard must end with its path: remove the query or fragment after ? or #.")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// apiKey returns the key. If key is empty, it reads the file that CALLYARD_KEY_FILE names. Without
// either it returns "".
func apiKey(key string) (string, error) {
	if name := os.Getenv("CALLYARD_KEY_FILE"); key == "" && name != "" {
		text, err := readInput(name, strings.NewReader(""), keyFileMost)
		switch {
		case err != nil:
			return "", fail(exitUsage, "CALLYARD_KEY_FILE cannot be read: %w", err)
		case len(text) > keyFileMost:
			return "", fail(exitUsage, "CALLYARD_KEY_FILE cannot be read: %s is too large for a key", name)
		}
		if key = strings.TrimSpace(string(bom.Trim(text))); key == "" {
			return "", fail(exitUsage, "The file in CALLYARD_KEY_FILE contains no key.")
		}
	}
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return "", fail(exitUsage, "The API key contains invalid characters: copy it again, without spaces and line breaks.")
		}
	}
	return key, nil
}

// keyFileMost limits the size of a key file, in bytes. It is larger than any valid key file.
const keyFileMost = 4 << 10
