package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// screenWait is how long the list of servers waits for those that still start.
	screenWait = 20 * time.Second
	// stderrLines is how much of a failed server's standard error is shown.
	stderrLines = 3
)

// greet prints the addresses at once, and the servers with a call to try when it is known
// how they came up. Each of the two is one write, so that no line of the log gets between.
func (u *fabric) greet(ctx context.Context) error {
	ctx, u.hush = context.WithCancel(ctx)
	u.said = make(chan struct{})
	if u.asJSON {
		close(u.said)
		return u.sayJSON()
	}
	fmt.Fprint(u.out, u.addresses())
	go func() {
		defer close(u.said)
		u.sayServers(ctx)
	}()
	return nil
}

func (u *fabric) bye(context.Context) error {
	u.hush()
	<-u.said
	return nil
}

// sayJSON prints the addresses as one line of JSON; GET /servers tells the rest.
func (u *fabric) sayJSON() error {
	base := u.door.URL()
	return json.NewEncoder(u.out).Encode(struct {
		Version   string `json:"version"`
		URL       string `json:"url"`
		MCP       string `json:"mcp"`
		Reference string `json:"reference"`
		Approver  string `json:"approver"`
		Data      string `json:"data"`
		NATS      string `json:"nats,omitempty"`
	}{setup.Version(), base, base + "/mcp", base + "/docs", u.approver.Base(), u.cfg.Data, u.nats.URL()})
}

func (u *fabric) addresses() string {
	base := u.door.URL()
	text := fmt.Sprintf("Callyard %s is up.\n\n  REST API   %s\n  MCP        %s/mcp\n  reference  %s/docs\n  approvals  %s\n  data       %s\n", setup.Version(), base, base, base, u.approver.Base(), u.cfg.Data)
	if address := u.nats.URL(); address != "" {
		text += fmt.Sprintf("  NATS       %s\n", address)
	}
	return text + "\n"
}

// sayServers prints how the servers came up, and a call to try. Servers that take longer
// than screenWait get a line each when they are known.
func (u *fabric) sayServers(ctx context.Context) {
	changes, cancel := u.door.Catalog().Changes()
	defer cancel()
	late := time.NewTimer(screenWait)
	defer late.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	said, shown := make(map[string]bool), false
	for {
		text := u.serverLines(said)
		switch done := len(said) >= len(u.served); {
		case shown:
			fmt.Fprint(u.out, text)
		case done:
			fmt.Fprint(u.out, text+"\n"+u.try(ctx))
			shown = true
		default:
			// Not all are known: these lines wait for the others.
			clear(said)
		}
		if shown && len(said) >= len(u.served) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-late.C:
			if !shown {
				shown = true
				fmt.Fprint(u.out, u.serverLines(said)+u.startingLines(said)+"\n"+u.try(ctx))
			}
		case <-changes:
		case <-tick.C:
		}
	}
}

// serverLines is a line for each server that is not in said and of which it is known how
// it came up; it puts them into said.
func (u *fabric) serverLines(said map[string]bool) string {
	var b strings.Builder
	for _, s := range u.door.Catalog().Servers() {
		if said[s.ID] || s.State == schema.StateStarting {
			continue
		}
		tools, err := u.door.Catalog().Tools(s.ID)
		switch {
		case s.State != schema.StateInitialized:
			fmt.Fprintf(&b, "  server %-20s FAILED: %s\n", s.ID, topLine(s.Error))
			for _, line := range lastLines(s.StderrTail, stderrLines) {
				fmt.Fprintf(&b, "         %-20s stderr: %s\n", "", line)
			}
		case err != nil:
			continue // its tools are being read
		default:
			fmt.Fprintf(&b, "  server %-20s ready, %d tools\n", s.ID, len(tools))
		}
		said[s.ID] = true
	}
	return b.String()
}

func (u *fabric) startingLines(said map[string]bool) string {
	var b strings.Builder
	for _, s := range u.served {
		if id := s.Session.Spec.ID; !said[id] {
			fmt.Fprintf(&b, "  server %-20s still starting\n", id)
		}
	}
	return b.String()
}

// lastLines returns the last n lines of the text that are not empty.
func lastLines(text string, n int) []string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	return lines[max(0, len(lines)-n):]
}

// try is a call that works with what is served, as a shell takes it, and how to stop.
func (u *fabric) try(ctx context.Context) string {
	if u.demo != nil {
		return u.demo.say(ctx, u.door.URL(), u.approver.Base()) + "\nCtrl-C stops it.\n"
	}
	return u.tryLine(u.door.URL()) + "\nCtrl-C stops it.\n"
}

// tryLine is one curl line that works with what is served. Where keys are set it takes
// the key from the variable that the callyard commands read as well.
func (u *fabric) tryLine(base string) string {
	curl, note := "curl -s", ""
	if len(u.cfg.FrontDoor.Keys) > 0 {
		curl += ` -H "X-API-Key: $CALLYARD_KEY"`
		note = "      with one of the API keys in CALLYARD_KEY; callyard keys new makes one\n"
	}
	for _, s := range u.door.Catalog().Servers() {
		if u.takes(s.ID, "echo", helloArguments) && s.Connected {
			return fmt.Sprintf("Try:  %s --json '%s' %s/servers/%s/tools/echo\n%s", curl, helloArguments, base, url.PathEscape(s.ID), note)
		}
	}
	for _, s := range u.door.Catalog().Servers() {
		if s.Connected {
			return fmt.Sprintf("Try:  %s %s/servers/%s/tools\n%s", curl, base, url.PathEscape(s.ID), note)
		}
	}
	return fmt.Sprintf("Try:  %s %s/servers\n%s", curl, base, note)
}

const helloArguments = `{"message":"hello"}`

// takes says that the server has the tool and that the arguments fit it.
func (u *fabric) takes(server, name, arguments string) bool {
	tool, err := u.door.Catalog().Tool(server, name)
	if err != nil {
		return false
	}
	s, err := u.door.Catalog().Schema(tool)
	return err == nil && len(s.Validate([]byte(arguments))) == 0
}
