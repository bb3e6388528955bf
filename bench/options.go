package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Options are the options of the command line. The zero value is the full run.
type Options struct {
	// Root is the repository. If empty, it is searched from the working directory upwards.
	Root string
	// Bin is a directory with callyard, frontdoor, worker and nats-server. If empty,
	// they are built from Root.
	Bin string
	// Command is the command line of the everything server on stdio. If empty, it is the
	// one that npm installed in e2e/servers of Root.
	Command []string

	C, Sizes         []int // default 1, 10, 50, 200; 200 B, 20 kB, 1 MB
	Rounds           int   // default 3
	Warmup, Duration time.Duration
	// Quick sets small defaults for the values above.
	Quick bool

	// Only names the targets to load. If empty, all are loaded.
	Only []string
	// URLs adds endpoints as "name=http://…"; see [NewEndpoint].
	URLs []string
	// Headers are sent with every call to an endpoint of URLs or URL.
	Headers map[string]string
	// Figures names the figures to measure instead ([FigureNames], or "all"). Calls is
	// the number of calls of their largest batch (default 1,000,000; with Quick 100,000).
	Figures []string
	Calls   int
	// MCPBridge is a checkout of MCP Bridge with its dependencies, and Python an interpreter
	// with ToolRegistry (default python3). They are the peers of the figure "published". If
	// they are missing, only their published figures are shown.
	MCPBridge, Python string
	// Out is the directory for bench.json and bench.png. If empty, neither is written.
	Out string
	// JSON prints the report as JSON instead of the table.
	JSON bool

	// URL, if set, loads only one tool of a running Callyard: Server, Tool and the
	// arguments object.
	URL, Server, Tool string
	Arguments         []byte

	// Log receives the log of the direct session. It may be nil.
	Log *slog.Logger
}

// builtIn returns the targets that the bench starts itself.
func builtIn() []string {
	return []string{DirectSDK, DirectSession, AllInOne, AllInOneMCP, ThreeProcesses}
}

// filled returns the options with defaults.
func (o Options) filled() Options {
	full := Options{C: []int{1, 10, 50, 200}, Sizes: []int{200, 20_000, 1_000_000}, Rounds: 3, Warmup: 500 * time.Millisecond, Duration: 2 * time.Second}
	if o.Quick {
		full = Options{C: []int{1, 50}, Sizes: []int{200, 20_000}, Rounds: 1, Warmup: 300 * time.Millisecond, Duration: 700 * time.Millisecond}
	}
	if len(o.C) == 0 {
		o.C = full.C
	}
	if len(o.Sizes) == 0 {
		o.Sizes = full.Sizes
	}
	o.Rounds = cmp.Or(o.Rounds, full.Rounds)
	o.Warmup, o.Duration = cmp.Or(o.Warmup, full.Warmup), cmp.Or(o.Duration, full.Duration)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// calls returns the number of calls of the largest batch of a figure.
func (o Options) calls() int {
	switch {
	case o.Calls > 0:
		return o.Calls
	case o.Quick:
		return 100_000
	}
	return 1_000_000
}

// wants reports whether to load the target.
func (o Options) wants(name string) bool {
	return len(o.Only) == 0 || slices.Contains(o.Only, name)
}

// peers returns the selected endpoints of URLs, and an error if a
// name in Only or an entry of URLs is invalid.
func (o Options) peers() ([]*Endpoint, error) {
	known := builtIn()
	var peers []*Endpoint
	for _, entry := range o.URLs {
		name, address, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("the endpoint %q has no name; write name=http://…", withoutQuery(entry))
		}
		if slices.Contains(known, name) {
			return nil, fmt.Errorf("two targets are called %q; give each a name of its own", name)
		}
		known = append(known, name)
		peer, err := NewEndpoint(name, address, o.Headers)
		if err != nil {
			return nil, err
		}
		if o.wants(name) {
			peers = append(peers, peer)
		}
	}
	for _, name := range o.Only {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no target %q; choose from %s", name, strings.Join(known, ", "))
		}
	}
	for _, size := range o.Sizes {
		if err := checkSize(size); err != nil {
			return nil, err
		}
	}
	return peers, nil
}

// withoutQuery removes the query, which may contain a secret, for error messages.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// endpoint returns the one endpoint of URL, Server, Tool and Arguments.
func (o Options) endpoint() (*Endpoint, error) {
	if o.Server == "" || o.Tool == "" {
		return nil, errors.New("to load a running Callyard, name the server and the tool")
	}
	arguments := o.Arguments
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(arguments, &object) != nil || object == nil {
		return nil, errors.New("the arguments are not a JSON object")
	}
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, errors.New("the URL of Callyard cannot be read; write it as http://127.0.0.1:8080")
	}
	e, err := NewEndpoint("callyard", base.JoinPath("servers", url.PathEscape(o.Server), "tools", url.PathEscape(o.Tool)).String(), o.Headers)
	if err != nil {
		return nil, err
	}
	e.fixed = arguments
	return e, nil
}
