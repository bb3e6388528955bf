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

// clientCommands returns the commands that talk to a running Callyard over its
// REST API, and `keys`, which needs none. They expect the persistent flags
// --url, --key and --output, and end with an [exitError] when they fail.
func clientCommands() []*cobra.Command {
	return []*cobra.Command{
		callCommand(), agentCommand(), batchCommand(), batchesCommand(), withWords(callsCommand()), toolsCommand(), usageCommand(), checkCommand(), setsCommand(), serversCommand(), workersCommand(), eventsCommand(), keysCommand(), tenantsCommand(), stateCommand(),
	}
}

const (
	defaultURL = "http://127.0.0.1:8080"
	// connectWait bounds the way to the front door, answerWait a question that
	// it answers from memory.
	connectWait = 5 * time.Second
	answerWait  = 30 * time.Second
)

// client is one command's way to a front door. It is used by one goroutine and
// closed at the end.
type client struct {
	base string // the address of the front door, without a slash at its end
	flag string // that sets base
	key  string
	in   io.Reader
	out  screen
	note screen // stderr: what is not part of the answer
	http *http.Client
	api  *callyard.ClientWithResponses
}

// clientFrom reads the flags --url, --key and --output, and where those are not
// given CALLYARD_URL, CALLYARD_KEY and CALLYARD_KEY_FILE. Errors are of the
// command line.
func clientFrom(cmd *cobra.Command) (*client, error) {
	c := &client{flag: "--url", in: cmd.InOrStdin(), out: outOf(cmd), note: screenOf(cmd.ErrOrStderr())}
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
			// The result is printed as it came, so it should come as it is.
			DisableCompression: true,
		},
		// A redirect would turn a POST into a GET, or carry the key elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, c.connect()
}

// connect makes the client of the REST API for the address and the key; nothing is asked
// yet. It is to be called again when those change.
func (c *client) connect() (err error) {
	c.api, err = callyard.New(c.base, c.key, callyard.WithHTTPClient(c.http), callyard.WithRetries(0), callyard.WithRequestEditorFn(edit))
	if err != nil {
		return fail(exitUsage, "The request to %s failed: %w", c.base, err)
	}
	return nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// asking is the body of a command that asks a running Callyard.
type asking func(ctx context.Context, c *client, args []string) error

// withClient makes a command's body of a function that needs a client.
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

// textFlag is the value of a flag that the command has, or inherits.
func textFlag(cmd *cobra.Command, name string) string {
	text, _ := cmd.Flags().GetString(name)
	return text
}

// group is a command that has others below it and shows its help itself.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: takes(0, 0), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(below...)
	return cmd
}

// takes checks the number of arguments; most below zero sets no limit.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			if slices.Contains(args, "") { // of a variable that is not set, mostly
				return fail(exitUsage, "An argument is empty. Usage: %s", cmd.UseLine())
			}
			return nil
		}
		if most >= 0 && len(args) > most && cmd.HasAvailableSubCommands() {
			for _, show := range cmd.Commands() { // people leave the word show out
				if known, _, err := cmd.Find(args[:1]); err == nil && known == cmd && show.Name() == "show" && most > 0 && show.Args(show, args) == nil {
					return fail(exitUsage, "%s takes one argument. Did you mean `%s %s`?", cmd.CommandPath(), show.CommandPath(), oneLine(strings.Join(args, " ")))
				}
			}
			return unknownCommand(cmd, args[0])
		}
		return fail(exitUsage, "The number of arguments is wrong (%d). Usage: %s", len(args), cmd.UseLine())
	}
}

// baseURL reads an address of Callyard; from says where it comes from.
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

// apiKey returns the key, or the content of the file that CALLYARD_KEY_FILE
// names. Without either it is empty.
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

// keyFileMost is more than a file with a key in it has.
const keyFileMost = 4 << 10
