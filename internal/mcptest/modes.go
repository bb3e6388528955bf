package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// scriptOf returns the script of the mode, and false for an unknown mode.
func scriptOf(mode string, o options) (script, bool) {
	var act script
	switch mode {
	case Echo:
	case Versions:
		act.versions, act.changing = true, true
	case Silent:
		act.deaf = true
	case MuteCalls:
		act.mute = true
	case Garbage:
		act.start = func(s *server) { s.out.noise = newNoise() }
	case Huge:
		act.answer = func(s *server, id json.RawMessage, _ string, modern bool) {
			s.out.huge(id, cmp.Or(o.Size, defaultHuge), modern)
		}
	case Exit:
		act.start = func(*server) {
			fmt.Fprintln(os.Stderr, ExitText)
			os.Exit(ExitStatus)
		}
	case Grandchild:
		act.start = startGrandchildren
	case SlowStart:
		o.Delay = cmp.Or(o.Delay, defaultDelay)
	case IgnoreDiscover:
		act.ignoreUnknown = true
	case IgnoreEOF:
		act.start, act.end = ignoreSignals, stay
	case WrongID:
		act.answer = func(s *server, _ json.RawMessage, body string, _ bool) {
			s.out.result(json.RawMessage(`"nobody-asked"`), body)
		}
	case DuplicateAnswers:
		act.answer = func(s *server, id json.RawMessage, body string, modern bool) {
			s.out.result(id, body)
			s.out.result(id, stamp(textResult(SecondAnswer), modern))
		}
	case Deep:
		act.answer = func(s *server, id json.RawMessage, _ string, modern bool) {
			s.out.result(id, stamp(deepResult(cmp.Or(o.Size, defaultDeep)), modern))
		}
	case SchemaChange:
		act.changing = true
	case UnknownContent:
		act.extraTool = OddTool
		act.answer = func(s *server, id json.RawMessage, _ string, modern bool) {
			s.out.result(id, string(UnknownContentResult(modern)))
		}
	case HalfLine:
		act.answer = func(s *server, id json.RawMessage, body string, _ bool) { s.out.half(id, body) }
	default:
		return script{}, false
	}
	if o.Delay > 0 {
		act.start = delayed(o.Delay, act.start)
	}
	return act, true
}

func delayed(d time.Duration, then func(*server)) func(*server) {
	return func(s *server) {
		time.Sleep(d)
		if then != nil {
			then(s)
		}
	}
}

func deepResult(depth int) string {
	return `{"content":[],"structuredContent":` + strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) + "}"
}

// newNoise returns a writer of one line that is not JSON. The lines are the same in every run, so
// that failures are reproducible.
func newNoise() func(io.Writer) {
	random := rand.New(rand.NewPCG(1, 2))
	return func(w io.Writer) {
		line := []byte("npm warn ")
		switch random.IntN(4) {
		case 0:
			line = append(line[:0], `{"jsonrpc":"2.0","id":1,"result":`...)
		case 1:
			line = append(line[:0], "\x1b[31m\xff\xfe\x00"...)
		case 2:
			line = line[:0] // an empty line
		}
		if len(line) > 0 {
			for range random.IntN(200) {
				line = append(line, byte(' '+random.IntN('~'-' ')))
			}
		}
		_, _ = w.Write(append(line, '\n'))
	}
}

// flood writes lines that are not JSON until ctx ends.
func (s *server) flood(ctx context.Context) {
	noise := newNoise()
	for ctx.Err() == nil {
		s.out.write(noise)
	}
}

// ignoreSignals catches the signals that can be caught, logs them, and continues.
func ignoreSignals(*server) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() { // runs until the process ends, as the mode requires
		for range signals {
			fmt.Fprintln(os.Stderr, StayedSignal)
		}
	}()
}

// stay keeps a server running after the end of its stdin.
func stay(*server) {
	fmt.Fprintln(os.Stderr, StayedEOF)
	time.Sleep(Lifetime)
}
