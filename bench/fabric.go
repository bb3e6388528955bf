package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/callyard/callyard/internal/kit/sleep"
)

// Names of the targets that the bench starts itself.
const (
	DirectSDK      = "direct-sdk"      // the go-sdk client on the server's pipes
	DirectSession  = "direct-session"  // our session on the server's pipes
	AllInOne       = "all-in-one"      // callyard up
	AllInOneMCP    = "all-in-one-mcp"  // callyard up, through its MCP endpoint
	ThreeProcesses = "three-processes" // nats-server, frontdoor and worker
)

const (
	readyTimeout = 30 * time.Second
	readyPause   = 20 * time.Millisecond
	serverID     = "everything"
	toolName     = "echo"
)

// fabric is a Callyard whose processes the bench started, reached over HTTP.
type fabric struct {
	*Endpoint
	children []*child
	address  string // of the front door
	nats     string // of the NATS server, if it is a separate process
}

// Close stops the processes, the front door first.
func (f *fabric) Close() error { return stopAll(f.children) }

// startAllInOne starts `callyard up` with the servers file. Its data and logs are in dir.
func startAllInOne(ctx context.Context, bin binaries, servers, dir string) (*fabric, error) {
	f, err := launchUp(bin, servers, dir)
	if err != nil {
		return nil, err
	}
	return f.ready(ctx, AllInOne)
}

// startAllInOneMCP is startAllInOne with calls through the MCP endpoint, in the protocol
// version with stateless requests (MCP 2026-07-28).
func startAllInOneMCP(ctx context.Context, bin binaries, servers, dir string) (*fabric, error) {
	const revision, method, tool = "2026-07-28", "tools/call", serverID + "__" + toolName
	f, err := launchUp(bin, servers, dir)
	if err != nil {
		return nil, err
	}
	if err := f.reach(ctx, AllInOneMCP, "/mcp"); err != nil {
		return nil, err
	}
	f.headers = map[string]string{"MCP-Protocol-Version": revision, "Mcp-Method": method, "Mcp-Name": tool}
	f.accept = "application/json, text/event-stream"
	f.around = [2]string{
		`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + revision +
			`","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"callyard-bench","version":"1"}},"name":"` + tool + `","arguments":`,
		`}}`,
	}
	return f, f.answers(ctx)
}

// launchUp starts the process with additional environment variables, without waiting for it.
func launchUp(bin binaries, servers, dir string, env ...string) (*fabric, error) {
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	f := &fabric{address: addresses[0]}
	return f, f.start("callyard", bin.callyard, dir, env,
		"up", "--servers", servers, "--data", filepath.Join(dir, "data"), "--log-level", "warn",
		"--listen", addresses[0], "--approver-listen", addresses[1])
}

// startThree starts the three processes of a call in production. NATS syncs to disk like
// the embedded server, so that both are comparable.
func startThree(ctx context.Context, bin binaries, servers, dir string) (*fabric, error) {
	f, err := launchThree(ctx, bin, servers, dir)
	if err != nil {
		return nil, err
	}
	return f.ready(ctx, ThreeProcesses)
}

// launchThree starts the three processes and waits only for NATS.
func launchThree(ctx context.Context, bin binaries, servers, dir string) (*fabric, error) {
	addresses, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("listen: %q\nmax_payload: 8MB\njetstream { store_dir: %q, sync_interval: always }\n",
		addresses[1], filepath.Join(dir, "nats"))
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return nil, fmt.Errorf("writing the settings of nats-server: %w", err)
	}
	f := &fabric{address: addresses[0], nats: addresses[1]}
	if err := f.start("nats", bin.nats, dir, nil, "--config", file); err != nil {
		return nil, err
	}
	if err := f.await(ctx, "listening", func() bool { return listens(ctx, addresses[1]) }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	nats := "nats://" + addresses[1]
	if err := f.start("worker", bin.worker, dir, nil, "--nats", nats, "--servers", servers, "--log-level", "warn"); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.start("front door", bin.frontdoor, dir, nil, "--nats", nats, "--listen", addresses[0], "--log-level", "warn"); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// start adds a child.
func (f *fabric) start(name, path, dir string, env []string, args ...string) error {
	if path == "" {
		return fmt.Errorf("the program for %s is not there", name)
	}
	c, err := startChild(name, path, args, filepath.Join(dir, name+".log"), env...)
	if err != nil {
		return err
	}
	f.children = append(f.children, c)
	return nil
}

// ready waits until the front door reports that it is ready and a call succeeds. On
// failure it stops all processes.
func (f *fabric) ready(ctx context.Context, name string) (*fabric, error) {
	if err := f.reach(ctx, name, "/servers/"+serverID+"/tools/"+toolName); err != nil {
		return nil, err
	}
	return f, f.answers(ctx)
}

// answers waits until a call succeeds: a ready front door accepts calls while the server
// may still be starting. On failure it stops all processes.
func (f *fabric) answers(ctx context.Context) error {
	var last error
	err := f.await(ctx, "answering calls", func() bool { last = tryOnce(ctx, f.Endpoint); return last == nil })
	if err != nil {
		return errors.Join(err, last, f.Close())
	}
	return nil
}

// reach waits until the front door reports that it is ready. path is the path of a tool. On
// failure it stops all processes.
func (f *fabric) reach(ctx context.Context, name, path string) error {
	base := "http://" + f.address
	var err error
	if f.Endpoint, err = NewEndpoint(name, base+path, nil); err != nil {
		return errors.Join(err, f.Close())
	}
	f.pids = make(map[string]int)
	for _, c := range f.children {
		f.pids[c.name] = c.pid()
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	err = f.await(ctx, "ready", func() bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
		if err != nil {
			return false
		}
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// tryOnce makes one small call.
func tryOnce(ctx context.Context, t Target) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	lane, err := t.Dial(ctx, 0, MinSize)
	if err != nil {
		return err
	}
	defer func() { _ = lane.Close() }()
	return lane.Call()
}

// await polls until condition returns true, a child ends or the time has expired.
func (f *fabric) await(ctx context.Context, what string, condition func() bool) error {
	deadline := time.Now().Add(readyTimeout)
	for !condition() {
		for _, c := range f.children {
			if err := c.ended(); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			last := f.children[len(f.children)-1]
			return fmt.Errorf("%s is not %s after %s: %s", last.name, what, readyTimeout, last.tail())
		}
		sleep.For(readyPause, ctx.Done())
	}
	return nil
}

func listens(ctx context.Context, address string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// freeAddresses returns n currently free loopback addresses.
func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") // closed below
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		// Kept open until all are chosen, so that they differ.
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// everything returns the entry of the everything server for a servers file. Its tool needs no
// approval, because the benchmark measures the path of a call, not approvals.
func everything(command []string) map[string]any {
	return map[string]any{serverID: map[string]any{"command": command[0], "args": command[1:], "riskLevel": 1}}
}

// writeServers writes a servers file with the entries.
func writeServers(file string, entries any) error {
	text, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the servers file: %w", err)
	}
	return nil
}
