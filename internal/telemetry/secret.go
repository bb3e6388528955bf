package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// hidden stands for every secret.
const hidden = "[secret]"

// Secret is text that must not show: a key, a password, a token. It prints,
// logs and marshals as "[secret]", whatever the verb; only [Secret.Reveal] tells.
type Secret string

var (
	_ fmt.Formatter  = Secret("")
	_ slog.LogValuer = Secret("")
)

// Reveal returns the text itself, for the one place that has to send or compare it.
func (s Secret) Reveal() string { return string(s) }

// String returns "[secret]".
func (Secret) String() string { return hidden }

// GoString returns "[secret]".
func (Secret) GoString() string { return hidden }

// Format writes "[secret]" for every verb; %x of a plain string type would tell.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue returns "[secret]".
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns "[secret]".
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON returns "[secret]" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }
