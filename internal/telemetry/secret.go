package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// hidden replaces every secret.
const hidden = "[secret]"

// Secret is a text that must not be shown: a key, a password, a token. It prints, logs and marshals
// as "[secret]" for every verb. Only [Secret.Reveal] returns the text.
type Secret string

var (
	_ fmt.Formatter  = Secret("")
	_ slog.LogValuer = Secret("")
)

// Reveal returns the text, for the one place that must send or compare it.
func (s Secret) Reveal() string { return string(s) }

// String returns "[secret]".
func (Secret) String() string { return hidden }

// GoString returns "[secret]".
func (Secret) GoString() string { return hidden }

// Format writes "[secret]" for every verb; %x of a plain string type would reveal the text.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue returns "[secret]".
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns "[secret]".
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON returns "[secret]" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }
