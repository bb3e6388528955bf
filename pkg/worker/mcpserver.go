package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/internal/session"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	// nameTimeout limits the wait of [Serve] for the name of the server.
	nameTimeout = 5 * time.Second
	// handlerGrace is how long the end of a connection waits for tools that ignore the end of their
	// context.
	handlerGrace = 5 * time.Second
)

// Serve adds an MCP server that the program created with the official Go SDK. The worker
// connects to it over a pipe in this process and serves all of its features: tools, resources,
// prompts, progress and list changes. The program can also serve it elsewhere.
//
// [Conversation], [Clock] and [Seed] work in its tools, resources and prompts, but only for
// requests from the worker. The same metadata from other clients of the server is ignored. A panic
// of a tool becomes a result with isError, and any other panic while the worker is answered an
// error.
func Serve(w *Worker, server *mcp.Server, options ...ServerOption) *Server {
	s := &Server{}
	for _, o := range options {
		o(s, &native.Info{})
	}
	if s.name == "" {
		var err error
		if s.name, err = nameOf(server); err != nil {
			s.fault(fmt.Errorf("reading the name of the MCP server: %w", err))
		}
	}
	ours := &ownSessions{panicked: s.panicked}
	server.AddReceivingMiddleware(ours.middleware)
	s.served.Session.Program = func() (*session.Process, error) { return startInProcess(server, ours) }
	s.served.Session.Tells = true
	w.Add(s)
	return s
}

// ownSessions holds the worker's sessions with an MCP server, which may have other sessions. It
// is safe for concurrent use.
type ownSessions struct {
	all      sync.Map // *mcp.ServerSession → struct{}
	panicked func(method string, value any)
}

// middleware adds the worker's metadata of a request to the context of the handler, and recovers
// from its panic, which would end the program with the calls of all its servers.
func (o *ownSessions) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		if _, own := o.all.Load(req.GetSession()); own {
			defer func() {
				v := recover()
				switch {
				case v == nil:
					return
				case method == schema.MethodCallTool:
					result, err = &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: native.Panicked}}, IsError: true}, nil
				default:
					result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server panicked; its log has the details"}
				}
				o.panicked(method, v)
			}()
			meta := metaOf(req.GetParams())
			text := func(name string) string {
				t, _ := meta[name].(string)
				return t
			}
			ctx = withCall(ctx, &native.Call{Session: text(session.MetaSession), Clock: text(session.MetaClock), Seed: text(session.MetaSeed)})
		}
		return next(ctx, method, req)
	}
}

// metaOf returns the _meta of a tool call, a resource read or a prompt request, and nil for
// other requests.
func metaOf(params mcp.Params) map[string]any {
	switch p := params.(type) {
	case *mcp.CallToolParamsRaw:
		if p != nil {
			return p.Meta
		}
	case *mcp.ReadResourceParams:
		if p != nil {
			return p.Meta
		}
	case *mcp.GetPromptParams:
		if p != nil {
			return p.Meta
		}
	}
	return nil
}

// nameOf asks the server for its name over a separate connection.
func nameOf(server *mcp.Server) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), nameTimeout)
	defer cancel()
	here, there := mcp.NewInMemoryTransports()
	serving, err := server.Connect(ctx, there, nil)
	if err != nil {
		return "", err
	}
	asking, err := mcp.NewClient(&mcp.Implementation{Name: "callyard", Version: "0.0.0"}, nil).Connect(ctx, here, nil)
	if err != nil {
		return "", errors.Join(err, serving.Close())
	}
	name := ""
	if info := asking.InitializeResult().ServerInfo; info != nil {
		name = info.Name
	}
	err = asking.Close()
	_ = serving.Wait() // it ends with the connection
	return name, err
}

// inProcess is a connection to an MCP server in this process, presented to the worker as a
// program.
type inProcess struct {
	serving *mcp.ServerSession
	stdin   *os.File // our ends
	stdout  *os.File
	grace   time.Duration // see handlerGrace
	done    chan struct{}
}

// startInProcess connects the server to pipes.
func startInProcess(server *mcp.Server, ours *ownSessions) (*session.Process, error) {
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("creating a pipe for the MCP server: %w", err)
	}
	ourOut, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("creating a pipe for the MCP server: %w", err), theirIn.Close(), ourIn.Close())
	}
	serving, err := server.Connect(context.Background(), &mcp.IOTransport{Reader: theirIn, Writer: theirOut, MaxLineLength: -1}, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to the MCP server: %w", err), theirIn.Close(), ourIn.Close(), theirOut.Close(), ourOut.Close())
	}
	ours.all.Store(mcp.Session(serving), struct{}{}) // before the first request is written
	p := &inProcess{serving: serving, stdin: ourIn, stdout: ourOut, grace: handlerGrace, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer ours.all.Delete(mcp.Session(serving))
		_ = serving.Wait() // the worker does not use the reason
	}()
	return &session.Process{Program: p, Stdin: ourIn, Stdout: ourOut}, nil
}

// PID returns 0, because there is no process.
func (p *inProcess) PID() int { return 0 }

// Done returns a channel that is closed when the connection has ended.
func (p *inProcess) Done() <-chan struct{} { return p.done }

// Err returns an error once the connection has ended, and nil before.
func (p *inProcess) Err() error {
	select {
	case <-p.done:
		return errors.New("closed the connection")
	default:
		return nil
	}
}

// StderrTail returns "", because the server writes to the program's log.
func (p *inProcess) StderrTail() string { return "" }

// Stop closes the connection and waits until the server has released it. It abandons a tool that ignores
// the end of its context, with its connection, because Go cannot stop it.
func (p *inProcess) Stop(grace time.Duration) {
	_ = p.stdin.Close() // it may already be closed
	defer func() { _ = p.stdout.Close() }()
	if p.endsWithin(grace) {
		return
	}
	go func() { _ = p.serving.Close() }() // it waits for the tools
	p.endsWithin(p.grace)
}

func (p *inProcess) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}
