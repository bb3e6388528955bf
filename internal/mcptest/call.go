package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
)

// callParams holds the params of a tools/call that the tools use.
type callParams struct {
	Name      string `json:"name"`
	Arguments struct {
		Text  string  `json:"text"`
		A     float64 `json:"a"`
		B     float64 `json:"b"`
		MS    int     `json:"ms"`
		Bytes int     `json:"bytes"`
		Path  string  `json:"path"`
		ID    string  `json:"id"`
		After string  `json:"after"`
	} `json:"arguments"`
	Meta requestMeta `json:"_meta"`

	version string // version of the tool when the call arrived
}

func (s *server) startCall(ctx context.Context, m message) {
	if s.act.mute {
		return
	}
	var p callParams
	if err := json.Unmarshal(m.Params, &p); err != nil {
		s.out.fault(m.ID, rpcFault{code: mcpwire.CodeInvalidParams, message: "Invalid params: " + err.Error()})
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.running[string(m.ID)] = cancel
	p.version = s.version
	s.mu.Unlock()
	s.tasks.Go(func() {
		defer func() {
			s.mu.Lock()
			delete(s.running, string(m.ID))
			s.mu.Unlock()
			cancel()
		}()
		s.call(ctx, m, p)
	})
}

// call runs the tool and answers, unless the call was cancelled.
func (s *server) call(ctx context.Context, m message, p callParams) {
	body, fault, ok := s.run(ctx, m, p)
	switch {
	case !ok: // cancelled: the call must not be answered
		return
	case fault != nil:
		s.out.fault(m.ID, *fault)
	case s.act.answer != nil:
		s.act.answer(s, m.ID, body, m.modern)
	default:
		s.out.result(m.ID, body)
	}
	if s.act.changing && !s.act.versions {
		s.change(m.modern)
	}
}

// run returns the result object of the tool, or the JSON-RPC error. ok is false if the call was
// cancelled.
func (s *server) run(ctx context.Context, m message, p callParams) (body string, fault *rpcFault, ok bool) {
	args := p.Arguments
	switch p.Name {
	case "echo":
		body = textResult(args.Text)
	case "add":
		sum := strconv.FormatFloat(args.A+args.B, 'f', -1, 64)
		body = fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":{"sum":%s}}`, sum, sum)
	case "sleep":
		if !s.sleep(ctx, args.MS, p.Meta.ProgressToken) {
			return "", nil, false
		}
		body = textResult(fmt.Sprintf("slept %d ms", args.MS))
	case "big":
		body = textResult(strings.Repeat("x", max(0, args.Bytes)))
	case "fail":
		body = errorResult(FailText)
	case "refuse":
		return "", &rpcFault{code: RefuseCode, message: "the server refused as told", data: `{"big":9007199254740993,"a":1.0}`}, true
	case "crash":
		os.Exit(CrashStatus)
	case "env":
		body = environResult(os.Environ())
	case "effect":
		if err := appendEffect(args.Path, args.ID); err != nil {
			body = errorResult(err.Error())
			break
		}
		if !s.sleep(ctx, args.MS, nil) || !waitForFile(ctx, args.After) {
			return "", nil, false
		}
		body = textResult("done " + args.ID)
	case "ask":
		if m.modern {
			return askResult, nil, true
		}
		body = errorResult("this tool needs a client of revision " + mcpwire.Modern)
	case "pay":
		if err := addRun(s.opts.Folder, p.version); err != nil {
			body = errorResult(err.Error())
			break
		}
		body = textResult(p.version)
	case "odd":
		body = textResult("odd") // listed only in mode UnknownContent, which replaces the result anyway
	default:
		return "", &rpcFault{code: mcpwire.CodeInvalidParams, message: "Unknown tool: " + p.Name}, true
	}
	return stamp(body, m.modern), nil, true
}

// sleep waits ms milliseconds in four parts and reports each if token is set. It returns false if
// ctx ended first.
func (s *server) sleep(ctx context.Context, ms int, token json.RawMessage) bool {
	const parts = 4
	for part := 1; part <= parts; part++ {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Duration(ms) * time.Millisecond / parts):
		}
		if token != nil {
			s.out.line(`{"jsonrpc":"2.0","method":"`+mcpwire.NotifyProgress+`","params":{"progressToken":%s,"progress":%d,"total":%d}}`, token, part, parts)
		}
	}
	return true
}

// waitForFile waits until a file exists at path. If path is empty, it does not wait. It returns
// false if ctx ended first.
func waitForFile(ctx context.Context, path string) bool {
	for path != "" {
		if _, err := os.Stat(path); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

func textResult(text string) string {
	return `{"content":[{"type":"text","text":` + quote(text) + `}]}`
}

func errorResult(text string) string {
	return `{"content":[{"type":"text","text":` + quote(text) + `}],"isError":true}`
}

func environResult(environ []string) string {
	list, err := json.Marshal(environ)
	if err != nil {
		panic("mcptest: encoding the environment: " + err.Error()) // strings always encode
	}
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":{"environ":%s}}`, quote(strings.Join(environ, "\n")), list)
}
