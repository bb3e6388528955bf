package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callyard/callyard/internal/launch/native"
	"github.com/callyard/callyard/internal/session"
)

// greetTime bounds how long [Serve] waits for the server to say its name.
const greetTime = 5 * time.Second

// Serve adds an MCP server that the program has made with the official Go SDK. It is
// served over a pipe in this process, with all that it offers: tools, resources, prompts,
// progress and list changes. The server keeps being usable elsewhere.
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
	s.served.Session.Program = func() (*session.Process, error) { return startInProcess(server) }
	w.Add(s)
	return s
}

// nameOf asks the server for its name, over a connection of its own.
func nameOf(server *mcp.Server) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), greetTime)
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

// inProcess is one connection of an MCP server in this process, as a worker sees a program.
type inProcess struct {
	serving *mcp.ServerSession
	stdin   *os.File // our end
	done    chan struct{}
}

// startInProcess connects the server to pipes.
func startInProcess(server *mcp.Server) (*session.Process, error) {
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
	p := &inProcess{serving: serving, stdin: ourIn, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = serving.Wait() // why it ended is no concern of the worker
	}()
	return &session.Process{Program: p, Stdin: ourIn, Stdout: ourOut}, nil
}

// PID returns 0: there is no process.
func (p *inProcess) PID() int { return 0 }

// Done is closed when the connection has ended.
func (p *inProcess) Done() <-chan struct{} { return p.done }

// Err returns how it ended, nil before.
func (p *inProcess) Err() error {
	select {
	case <-p.done:
		return errors.New("closed the connection")
	default:
		return nil
	}
}

// StderrTail returns "": what the server logs is the program's.
func (p *inProcess) StderrTail() string { return "" }

// Stop closes the connection and waits until the server has let go of it.
func (p *inProcess) Stop(grace time.Duration) {
	_ = p.stdin.Close() // it may be closed
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.serving.Close()
		<-p.done
	}
}
