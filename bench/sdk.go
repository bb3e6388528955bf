package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	startTimeout = 20 * time.Second
	stopGrace    = 10 * time.Second
)

// sdkTarget is the baseline: the client of the go-sdk on the pipes of the
// server, as used by a program without a fabric.
type sdkTarget struct {
	session *mcp.ClientSession
	process *os.Process
}

// startSDK starts the server with the command line and additional environment variables.
func startSDK(ctx context.Context, command []string, env ...string) (*sdkTarget, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.Command(command[0], command[1:]...) // not CommandContext: the process outlives ctx
	cmd.Env = append(os.Environ(), env...)
	client := mcp.NewClient(&mcp.Implementation{Name: "callyard-bench", Version: "0"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: stopGrace}, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting the go-sdk client to the server: %w", err)
	}
	return &sdkTarget{session: session, process: cmd.Process}, nil
}

func (t *sdkTarget) Name() string         { return DirectSDK }
func (t *sdkTarget) PIDs() map[string]int { return map[string]int{toolServer: t.process.Pid} }

func (t *sdkTarget) Close() error {
	if err := t.session.Close(); err != nil {
		return fmt.Errorf("closing the go-sdk session: %w", err)
	}
	return nil
}

// drop kills the server, because some servers run on for seconds after their input ends.
func (t *sdkTarget) drop() {
	_ = t.process.Kill()  // fails only if it has ended
	_ = t.session.Close() // reports that it was killed
}

func (t *sdkTarget) Dial(ctx context.Context, n, size int) (Lane, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	return &sdkLane{ctx: ctx, session: t.session, message: newMessage(make([]byte, size), n)}, nil
}

type sdkLane struct {
	ctx     context.Context // the lifetime of the lane, see Target.Dial
	session *mcp.ClientSession
	message *message
}

func (l *sdkLane) Call() error {
	l.message.next()
	text := string(l.message.text)
	result, err := l.session.CallTool(l.ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": text}})
	switch {
	case err != nil:
		return err
	case result.IsError:
		return errTool
	case len(result.Content) != 1:
		return errNotWhole
	}
	answer, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		return errors.New("the answer is not a text")
	}
	if !strings.Contains(answer.Text, text) {
		return errNotWhole
	}
	return nil
}

func (l *sdkLane) Close() error { return nil }
