package sandbox

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/launch"
)

func TestMain(m *testing.M) {
	if launch.IsReaper() {
		os.Exit(launch.RunReaper(Sweep))
	}
	if len(os.Args) > 2 && os.Args[1] == "sandbox-test-worker" {
		os.Exit(workerPart(os.Args[2], os.Args[3]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, image := range []*testImage{&proberImage, &forwarderImage} {
			if err := image.remove(); err != nil {
				fmt.Fprintln(os.Stderr, "removing a test image:", err)
				code = max(code, 1)
			}
		}
		os.Exit(code)
	}))
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// The images of the prober and the forwarder, made once and removed in the end.
var proberImage, forwarderImage testImage

type testImage struct {
	once sync.Once
	id   string
	err  error
}

// imageOf imports a file as an image of nothing else.
func imageOf(ctx context.Context, c *client.Client, program, name string, changes ...string) (string, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return "", fmt.Errorf("%w; scripts/test.sh --setup builds it", err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, dir := range []string{"etc", "tmp", "dev", "proc", "sys"} {
		if err := w.WriteHeader(&tar.Header{Name: dir, Mode: 0o755, Typeflag: tar.TypeDir}); err != nil {
			return "", err
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: "prober", Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		return "", err
	}
	if _, err := w.Write(content); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	changes = append([]string{`ENTRYPOINT ["/prober"]`}, changes...)
	got, err := c.ImageImport(ctx, client.ImageImportSource{Source: &archive, SourceName: "-"}, name, client.ImageImportOptions{Changes: changes})
	if err != nil {
		return "", err
	}
	defer got.Close()
	answer, err := io.ReadAll(got)
	if err != nil {
		return "", err
	}
	_, id, ok := bytes.Cut(answer, []byte("sha256:"))
	if !ok || len(id) < 64 {
		return "", fmt.Errorf("no id in %q", answer)
	}
	return "sha256:" + string(id[:64]), nil
}

func proberFile() string { return filepath.Join(os.Getenv("CALLYARD_TEST_BIN"), "sandbox-prober") }

// prober returns the id of the prober's image in the usual engine.
func prober(t testing.TB) string {
	t.Helper()
	return proberImage.made(t, "sandbox-prober", "callyard-sandbox-test")
}

func (i *testImage) made(t testing.TB, file, name string) string {
	t.Helper()
	i.once.Do(func() {
		d, err := newDial("", "")
		if err != nil {
			i.err = err
			return
		}
		c, err := d.client()
		if err != nil {
			i.err = err
			return
		}
		defer c.Close()
		i.id, i.err = imageOf(context.Background(), c, filepath.Join(os.Getenv("CALLYARD_TEST_BIN"), file), name+":"+strconv.Itoa(os.Getpid()))
	})
	if i.err != nil {
		t.Fatalf("these tests need a Docker engine and the programs that scripts/test.sh --setup brings: %v", i.err)
	}
	return i.id
}

func (i *testImage) remove() error {
	if i.id == "" {
		return nil
	}
	d, err := newDial("", "")
	if err != nil {
		return err
	}
	c, err := d.client()
	if err != nil {
		return err
	}
	_, err = c.ImageRemove(context.Background(), i.id, client.ImageRemoveOptions{Force: true})
	return errors.Join(err, c.Close())
}

// owner returns a name that no other test has.
func owner(t testing.TB) string {
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r == '_' {
			return '-'
		}
		return r
	}, t.Name())
	return fmt.Sprintf("%.60s-%d-%d", clean, os.Getpid(), time.Now().UnixNano()%1_000_000)
}

// engine opens the usual engine. In the end it must hold nothing of the test.
func engine(t testing.TB, change ...func(*Options)) *Engine {
	t.Helper()
	o := Options{Owner: owner(t), Scope: owner(t), Log: quiet()}
	for _, do := range change {
		do(&o)
	}
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("these tests need a Docker engine, which scripts/test.sh --setup brings: %v", err)
	}
	t.Cleanup(func() {
		if n := len(e.live); n != 0 {
			t.Errorf("%d containers were left to Close", n)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if left := owned(t, e.o.Owner); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return e
}

// asker is a client of the usual engine for looking at it.
func asker(t testing.TB) *client.Client {
	t.Helper()
	c := clientAt(t, "")
	t.Cleanup(func() { c.Close() })
	return c
}

// clientAt is a client of the engine at host, empty for the usual one. Whoever has it
// closes it.
func clientAt(t testing.TB, host string) *client.Client {
	t.Helper()
	d, err := newDial(host, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// owned returns the containers of an owner, running or not.
func owned(t testing.TB, owner string) []string {
	t.Helper()
	c := clientAt(t, "")
	defer c.Close()
	var ids []string
	for _, item := range there(t, c, make(client.Filters).Add("label", labelOwner+"="+owner)) {
		ids = append(ids, item.ID)
	}
	return ids
}

// there returns the containers that are listed and known: an engine may list one
// for ever that it removed twice at once.
func there(t testing.TB, c *client.Client, filters client.Filters) []container.Summary {
	t.Helper()
	list, err := c.ContainerList(context.Background(), client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(item container.Summary) bool {
		_, err := c.ContainerInspect(context.Background(), item.ID, client.ContainerInspectOptions{})
		return cerrdefs.IsNotFound(err)
	})
}

// spec returns a pinned Spec of the prober.
func spec(t testing.TB, e *Engine, change ...func(*Config)) Spec {
	t.Helper()
	cfg := Config{Image: prober(t)}
	for _, do := range change {
		do(&cfg)
	}
	s, err := Resolve("prober", cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = e.Pin(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t testing.TB, e *Engine, s Spec) *Container {
	t.Helper()
	c, err := e.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(0) })
	return c
}

// client is a little MCP client.
type mcpClient struct {
	c    *Container
	in   *bufio.Reader
	next int
}

// handshake is the handshake of the tests.
func handshake(ctx context.Context, c *Container) (*mcpClient, error) {
	k := &mcpClient{c: c, in: bufio.NewReaderSize(c.Stdout, 64<<10)}
	if _, err := k.ask("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"},
	}); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c.Stdin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return nil, err
	}
	tools, err := k.ask("tools/list", nil)
	if err == nil && !bytes.Contains(tools, []byte(`"echo"`)) {
		err = fmt.Errorf("it offers %s", tools)
	}
	return k, err
}

func (k *mcpClient) Close() {}

func (k *mcpClient) ask(method string, params any) (json.RawMessage, error) {
	k.next++
	request := map[string]any{"jsonrpc": "2.0", "id": k.next, "method": method}
	if params != nil {
		request["params"] = params
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if _, err := k.c.Stdin.Write(append(body, '\n')); err != nil {
		return nil, err
	}
	if err := k.c.Stdout.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	for {
		line, err := k.in.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var answer struct {
			ID     any
			Method string
			Result json.RawMessage
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return nil, fmt.Errorf("said %q: %w", line, err)
		}
		if answer.Method == "" && answer.ID == float64(k.next) {
			return answer.Result, nil
		}
	}
}

// tool calls a tool and returns its text.
func (k *mcpClient) tool(name string, args map[string]string) (string, error) {
	result, err := k.ask("tools/call", map[string]any{"name": name, "arguments": args})
	if err != nil {
		return "", err
	}
	var got struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &got); err != nil || len(got.Content) != 1 {
		return "", fmt.Errorf("answered %s (%w)", result, err)
	}
	return got.Content[0].Text, nil
}

func opened(t testing.TB, c *Container) *mcpClient {
	t.Helper()
	k, err := handshake(t.Context(), c)
	if err != nil {
		t.Fatalf("%v; the container %v; stderr %q", err, c.Err(), c.StderrTail())
	}
	return k
}

// ended waits until the container is gone and returns how it went.
func ended(t testing.TB, c *Container) string {
	t.Helper()
	select {
	case <-c.Done():
		return c.Err().Error()
	case <-time.After(time.Minute):
		t.Fatal("the container is still there")
		return ""
	}
}

func pool(t testing.TB, e *Engine, s Spec) *Pool[*mcpClient] {
	t.Helper()
	p := OpenPool(e, PoolOptions[*mcpClient]{Spec: s, Handshake: handshake, Log: quiet()})
	t.Cleanup(p.Close)
	return p
}
