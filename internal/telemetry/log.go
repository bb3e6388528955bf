package telemetry

import (
	"encoding"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/lmittmann/tint"

	"github.com/callyard/callyard/internal/kit/visible"
)

// NewLogger returns a logger that writes to w.
//
// level is debug, info, warn or error; empty means info. format is "text" for people, "json" for
// machines, or "auto" (also if empty): text if w is a terminal, otherwise JSON. Text has colors only
// on a terminal and if NO_COLOR is not set. Attributes with names of secrets (password,
// authorization and similar) are written as "[secret]".
//
// The error names the unknown setting.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var least slog.Level
	switch strings.ToLower(level) {
	case "debug":
		least = slog.LevelDebug
	case "", "info":
		least = slog.LevelInfo
	case "warn", "warning":
		least = slog.LevelWarn
	case "error":
		least = slog.LevelError
	default:
		return nil, fmt.Errorf("log level %q is unknown; use debug, info, warn or error", level)
	}
	terminal := onTerminal(w)
	switch strings.ToLower(format) {
	case "", "auto":
		if terminal {
			return slog.New(textHandler(w, least, true)), nil
		}
		return slog.New(jsonHandler(w, least)), nil
	case "text":
		return slog.New(textHandler(w, least, terminal)), nil
	case "json":
		return slog.New(jsonHandler(w, least)), nil
	default:
		return nil, fmt.Errorf("log format %q is unknown; use auto, text or json", format)
	}
}

func textHandler(w io.Writer, least slog.Level, colour bool) slog.Handler {
	return tint.NewTextHandler(w, &tint.Options{
		Level:       least,
		TimeFormat:  time.DateTime,
		NoColor:     !colour || os.Getenv("NO_COLOR") != "",
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr { return escapeControls(hideSecrets(groups, a)) },
	})
}

// escapeControls escapes the characters of an attribute that could control a terminal. Names and errors
// of MCP servers are logged, and the handler writes escape characters as they are, for colours.
func escapeControls(a slog.Attr) slog.Attr {
	text := textOf(a.Value.Resolve())
	if strings.IndexFunc(text, visible.ControlsTerminal) < 0 && !strings.Contains(text, spelledEscape) {
		return a
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, spelledEscape, "\x1b") {
		if visible.ControlsTerminal(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return slog.String(a.Key, b.String())
}

// textOf returns the text of a value as the handler would write it, or "" for one that has no text of
// others: numbers, times and nil pointers.
func textOf(v slog.Value) (text string) {
	defer func() {
		if recover() != nil { // a method of a nil pointer; the handler has a text for it
			text = ""
		}
	}()
	switch v.Kind() {
	case slog.KindString:
		return v.String()
	case slog.KindAny:
		switch of := v.Any().(type) {
		case encoding.TextMarshaler: // first, because it may hide a secret
			raw, err := of.MarshalText()
			if err == nil {
				return string(raw)
			}
		case error:
			return of.Error()
		default:
			return fmt.Sprintf("%+v", of)
		}
	}
	return ""
}

// spelledEscape is what the handler turns into an escape character when it quotes a text, also if the text
// itself has these four characters.
const spelledEscape = `\x1b`

func jsonHandler(w io.Writer, least slog.Level) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: least, ReplaceAttr: hideSecrets})
}

func onTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(f.Fd())
}

// hideSecrets is the second protection after [Secret]: it hides an attribute that has the name of a
// secret, whatever its type.
func hideSecrets(_ []string, a slog.Attr) slog.Attr {
	switch strings.ToLower(a.Key) {
	case "password", "passwd", "secret", "token", "authorization", "cookie", "set-cookie", "api_key", "apikey", "credential", "private_key":
		return slog.String(a.Key, hidden)
	}
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String()) // JSON would have nanoseconds
	}
	return a
}
