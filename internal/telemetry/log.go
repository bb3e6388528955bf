package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/lmittmann/tint"
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
		ReplaceAttr: hideSecrets,
	})
}

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
