package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/console"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// screenWait limits the time that the list of servers waits for servers that are starting.
	screenWait = 20 * time.Second
	// stderrLines is the number of lines shown of a failed server's stderr.
	stderrLines = 3
	// spareRows are left free on the terminal for the command line and a log warning.
	spareRows = 2
	// minServerRows is the minimum number of rows for servers, however small the terminal is.
	minServerRows = 4
)

// printBanner prints the addresses immediately, and the servers with an example call as soon as their
// states are known. Each of the two is one write, so that no log line splits it.
func (u *fabric) printBanner(ctx context.Context) error {
	ctx, u.greetCancel = context.WithCancel(ctx)
	u.greeted = make(chan struct{})
	if u.out.structured() {
		close(u.greeted)
		u.activity.end()
		u.starting.Store(false)
		return u.printAddresses()
	}
	u.print(u.addresses())
	go func() {
		defer close(u.greeted)
		u.showServers(ctx)
	}()
	return nil
}

func (u *fabric) endGreeting(context.Context) error {
	u.greetCancel()
	<-u.greeted
	return nil
}

// print writes a part of the start screen above the progress line.
func (u *fabric) print(text string) {
	u.activity.above(func() { _ = u.out.text(text) }) // best effort: the fabric also runs without the screen
}

// printAddresses prints the addresses for programs; GET /servers has the rest.
func (u *fabric) printAddresses() error {
	base := u.door.URL()
	return u.out.value(struct {
		Version   string `json:"version"`
		URL       string `json:"url"`
		MCP       string `json:"mcp"`
		Reference string `json:"reference"`
		Approver  string `json:"approver"`
		Console   string `json:"console,omitempty"`
		Data      string `json:"data"`
		NATS      string `json:"nats,omitempty"`
	}{setup.Version(), base, base + "/mcp", base + "/docs", u.approver.Base(), u.consoleURL(), u.cfg.Data, u.nats.URL()})
}

func (u *fabric) addresses() string {
	base := u.door.URL()
	return u.out.addressSheet(setup.Version(), [][2]string{
		{"REST API", base}, {"MCP", base + "/mcp"}, {"reference", base + "/docs"}, {"approvals", u.approver.Base()}, {"console", u.consoleURL()}, {"NATS", u.nats.URL()}, {"data", u.cfg.Data},
	})
}

// consoleURL returns the address of the console, or "" if no user may access it.
func (u *fabric) consoleURL() string {
	c := u.cfg.Approver
	if guarded := len(c.Keys) > 0 || c.OIDC.Configured(); guarded && len(c.Console.Groups) == 0 || u.cfg.FrontDoor.CertFile != "" && c.Console.FrontDoor == "" {
		return ""
	}
	return u.approver.Base() + console.Root
}

// addressSheet formats the first part of the start screen. It omits rows without an address.
func (s screen) addressSheet(version string, addresses [][2]string) string {
	var b strings.Builder
	b.WriteString(s.paint(bold, "Callyard "+version+" is up.") + "\n\n")
	for _, a := range addresses {
		if a[1] != "" {
			fmt.Fprintf(&b, "  %-9s  %s\n", a[0], a[1])
		}
	}
	return b.String() + "\n"
}

// showServers prints the states of the servers and an example call. Servers that take longer
// than screenWait get a separate line when they are ready or have failed.
func (u *fabric) showServers(ctx context.Context) {
	defer u.starting.Store(false)
	defer u.activity.end()
	changes, cancel := u.door.Catalog().Changes()
	defer cancel()
	late := time.NewTimer(screenWait)
	defer late.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	reported := make(map[string]bool)
	for waiting, shown := true, false; ; {
		servers, starting := u.startServers()
		switch {
		case shown:
			for _, s := range servers {
				if s.state != startingState && s.state != vacantState && !reported[s.id] {
					reported[s.id] = true
					u.print(u.out.lateServer(&s))
				}
			}
		case starting == 0 || !waiting:
			u.activity.end()
			for _, s := range servers {
				reported[s.id] = s.state != startingState && s.state != vacantState
			}
			u.print(u.serverScreen(ctx, servers))
			u.starting.Store(false)
			shown = true
		default:
			u.activity.step(len(servers)-starting, len(servers), "starting servers")
		}
		if shown && starting == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-late.C:
			waiting = false
		case <-changes:
		case <-tick.C:
		}
	}
}

const (
	readyState    = "ready"
	startingState = "starting"
	failedState   = "failed"
	vacantState   = "no program" // no program is attached yet
)

// startServer is a server on the start screen.
type startServer struct {
	id, state string
	tools     int
	fault     string // reason for the failure
	stderr    []string
}

// startServers returns the servers of this process, failed ones first, and the number of servers
// that are still starting.
func (u *fabric) startServers() (servers []startServer, starting int) {
	known := make(map[string]bool)
	for _, s := range u.door.Catalog().Servers() {
		known[string(s.ID)] = true
		server := startServer{id: string(s.ID), state: startingState}
		switch tools, err := u.door.Catalog().Tools(s.ID); {
		case s.State == schema.StateStarting && s.Transport == config.TypeAttach:
			server.state = vacantState
		case s.State == schema.StateStarting:
		case s.State != schema.StateInitialized:
			server.state, server.fault, server.stderr = failedState, topLine(s.Error), lastLines(s.StderrTail, stderrLines)
		case err == nil: // otherwise its tools are still being read
			server.state, server.tools = readyState, len(tools)
		}
		servers = append(servers, server)
	}
	for _, s := range u.served {
		if id := s.Session.Spec.ID; !known[string(id)] {
			servers = append(servers, startServer{id: string(id), state: startingState})
		}
	}
	for _, s := range servers {
		if s.state == startingState {
			starting++
		}
	}
	order := []string{failedState, startingState, vacantState, readyState}
	slices.SortFunc(servers, func(a, b startServer) int {
		return cmp.Or(slices.Index(order, a.state)-slices.Index(order, b.state), strings.Compare(a.id, b.id))
	})
	return servers, starting
}

// lateServer describes a server that was late, in one sentence, and the end of its stderr if it failed.
func (s screen) lateServer(v *startServer) string {
	if v.state != failedState {
		return s.sentences("Server "+oneLine(v.id)+" is ready: "+count(v.tools, "tool")+".\n", 2)
	}
	text := s.sentences("Server "+oneLine(v.id)+" failed: "+oneLine(v.fault)+"\n", 2)
	if stderr := stderrOf([]startServer{*v}); stderr != "" {
		text += stderr + "\n"
	}
	return text
}

// serverScreen formats the second part of the start screen. At a terminal the two parts fit the
// rows, unless failed servers have long output.
func (u *fabric) serverScreen(ctx context.Context, servers []startServer) string {
	below := u.try(ctx)
	stderr := stderrOf(servers)
	rows := 0
	if u.out.height > 0 {
		used := strings.Count(u.addresses()+stderr+below, "\n") + 3 // the header, an empty row and the cursor
		rows = max(u.out.height-used-spareRows, minServerRows)
	}
	return u.out.serverTable(servers, rows) + stderr + "\n" + below
}

// serverTable formats a table of the servers with at most most rows below its header. 0 means no
// limit. It counts the omitted servers.
func (s screen) serverTable(servers []startServer, most int) string {
	shown, rest := servers, []startServer(nil)
	if most > 0 && len(servers) > most {
		shown, rest = servers[:most-1], servers[most-1:]
	}
	rows := make([][]cell, 0, len(shown))
	for _, v := range shown {
		row := cells(v.id, v.state, "", v.fault)
		switch v.state {
		case readyState:
			row[1].paint, row[2].text = green, strconv.Itoa(v.tools)
		case failedState:
			row[1].paint = red
		default:
			row[1].paint = yellow
		}
		rows = append(rows, row)
	}
	header := []string{"SERVER", "STATE", "TOOLS", "ERROR"}
	if !slices.ContainsFunc(shown, func(v startServer) bool { return v.fault != "" }) {
		header = header[:3]
		for i := range rows {
			rows[i] = rows[i][:3]
			if rows[i][2].text == "" {
				rows[i][2].text = "-"
			}
		}
	}
	var b bytes.Buffer
	table := s
	table.w = &b
	if s.width > 0 {
		table.width = max(s.width-2, 1)
	}
	_ = table.table(header, rows) // writes to a buffer do not fail
	var text strings.Builder
	for line := range strings.Lines(b.String()) {
		text.WriteString("  " + line)
	}
	if len(rest) > 0 {
		states := make(map[string]int)
		for _, v := range rest {
			states[v.state]++
		}
		var counts []string
		for _, state := range []string{failedState, startingState, vacantState, readyState} {
			if states[state] > 0 {
				counts = append(counts, strconv.Itoa(states[state])+" "+state)
			}
		}
		fmt.Fprintf(&text, "  … and %d more: %s\n", len(rest), strings.Join(counts, ", "))
	}
	return text.String()
}

// stderrOf formats the last lines of stderr of the first failed server.
func stderrOf(servers []startServer) string {
	var b strings.Builder
	for _, s := range servers {
		if s.state != failedState || len(s.stderr) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n  %s wrote to stderr:\n", oneLine(s.id))
		for _, line := range s.stderr {
			fmt.Fprintf(&b, "    %s\n", oneLine(line))
		}
		break // `callyard servers show` prints the others
	}
	return b.String()
}

// lastLines returns the last n lines of the text that are not empty.
func lastLines(text string, n int) []string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	return lines[max(0, len(lines)-n):]
}

// try returns a shell command that calls a served tool, and how to stop.
func (u *fabric) try(ctx context.Context) string {
	if u.demo != nil {
		return u.demo.instructions(ctx, u.out, u.door.URL(), u.approver.Base()) + "\nPress Ctrl-C to stop.\n"
	}
	text := "Try it in another terminal:\n"
	if len(u.cfg.FrontDoor.Keys) > 0 {
		text = "Try it in another terminal, with an API key in CALLYARD_KEY:\n"
	}
	return text + u.out.commandLine(u.tryCommand(u.door.URL())...) + "\nPress Ctrl-C to stop.\n"
}

// tryCommand returns the words of a curl command that works with the served servers. If keys are
// configured, it uses the variable that the callyard commands also read.
func (u *fabric) tryCommand(base string) []string {
	words := []string{"curl"}
	if len(u.cfg.FrontDoor.Keys) > 0 {
		words = append(words, `-H "X-API-Key: $CALLYARD_KEY"`)
	}
	for _, s := range u.door.Catalog().Servers() {
		if u.takes(string(s.ID), "echo", helloArguments) && s.Connected {
			return append(words, "--json '"+helloArguments+"'", base+"/servers/"+url.PathEscape(string(s.ID))+"/tools/echo")
		}
	}
	for _, s := range u.door.Catalog().Servers() {
		if s.Connected {
			return append(words, base+"/servers/"+url.PathEscape(string(s.ID))+"/tools")
		}
	}
	return append(words, base+"/servers")
}

// commandLine formats a shell command on one line, or on several with continuations if the terminal
// is narrower.
func (s screen) commandLine(words ...string) string {
	const indent = "  "
	lines := []string{indent + words[0]}
	for _, word := range words[1:] {
		last := &lines[len(lines)-1]
		if s.width > 0 && columnsOf(*last)+1+columnsOf(word)+len(` \`) > s.width && columnsOf(strings.Join(append([]string{indent}, words...), " ")) > s.width+1 {
			*last += ` \`
			lines = append(lines, indent+indent+word)
			continue
		}
		*last += " " + word
	}
	return strings.Join(lines, "\n") + "\n"
}

const helloArguments = `{"message":"hi"}`

// takes reports whether the server has the tool and the arguments match its schema.
func (u *fabric) takes(server, name, arguments string) bool {
	tool, err := u.door.Catalog().Tool(schema.ServerID(server), name)
	if err != nil {
		return false
	}
	s, err := u.door.Catalog().Schema(tool)
	return err == nil && len(s.Validate([]byte(arguments))) == 0
}
