package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/kit/visible"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSecretIsNeverPrinted(t *testing.T) {
	const text = "hunter2"
	type settings struct {
		Name string
		Key  Secret
		Keys []Secret          `json:"keys"`
		Map  map[string]Secret `json:"map"`
	}
	held := settings{"n", text, []Secret{text}, map[string]Secret{"a": text}}
	shown := []string{
		fmt.Sprint(held), fmt.Sprint(&held), fmt.Sprint(held.Key), held.Key.String(), held.Key.GoString(),
		fmt.Errorf("bad key %s", held.Key).Error(), errors.Join(fmt.Errorf("%v", held)).Error(),
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%20s", "%T|%[1]v"} {
		shown = append(shown, fmt.Sprintf(verb, held.Key), fmt.Sprintf(verb, held))
	}
	raw, err := json.Marshal(held)
	if err != nil {
		t.Fatal(err)
	}
	shown = append(shown, string(raw))
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log, err := NewLogger(&out, "debug", format)
		if err != nil {
			t.Fatal(err)
		}
		log.With("key", held.Key).Info("got "+held.Key.String(), "held", held, "pointer", &held, slog.Group("g", "key", held.Key))
		log.Info("plain text under a telling name", "Authorization", text, slog.Group("g", "password", text))
		shown = append(shown, out.String())
	}
	for _, s := range shown {
		if strings.Contains(s, text) || strings.Contains(strings.ToLower(s), "68756e74657232") {
			t.Errorf("shows: %s", s)
		}
		if !strings.Contains(s, hidden) {
			t.Errorf("does not say that there is a secret: %s", s)
		}
	}
	if held.Key.Reveal() != text {
		t.Error("Reveal does not tell")
	}
}

func TestLogFormatsAndLevels(t *testing.T) {
	for _, c := range []struct {
		level, format string
		json, debug   bool
	}{
		{"", "", true, false},
		{"info", "auto", true, false},
		{"DEBUG", "json", true, true},
		{"debug", "text", false, true},
		{"warn", "text", false, false},
	} {
		var out bytes.Buffer
		log, err := NewLogger(&out, c.level, c.format)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("small")
		log.Error("big", "n", 1)
		if got := strings.Contains(out.String(), "small"); got != c.debug {
			t.Errorf("%+v: %s", c, out.String())
		}
		last := strings.TrimSpace(out.String()[strings.LastIndex(strings.TrimSpace(out.String()), "\n")+1:])
		if json.Valid([]byte(last)) != c.json {
			t.Errorf("%+v: %s", c, out.String())
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%+v: colour away from a terminal: %q", c, out.String())
		}
	}
}

func TestUnknownLogSettingsAreRefusedByName(t *testing.T) {
	if _, err := NewLogger(&bytes.Buffer{}, "loud", "json"); err == nil || !strings.Contains(err.Error(), `"loud"`) {
		t.Error(err)
	}
	if _, err := NewLogger(&bytes.Buffer{}, "info", "xml"); err == nil || !strings.Contains(err.Error(), `"xml"`) {
		t.Error(err)
	}
}

func TestColourNeedsATerminalAndUnsetNoColor(t *testing.T) {
	for _, c := range []struct {
		colour  bool
		noColor string
		want    bool
	}{{true, "", true}, {true, "1", false}, {false, "", false}} {
		t.Setenv("NO_COLOR", c.noColor)
		var out bytes.Buffer
		slog.New(textHandler(&out, slog.LevelInfo, c.colour)).Error("x")
		if strings.Contains(out.String(), "\x1b[") != c.want {
			t.Errorf("%+v: %q", c, out.String())
		}
	}
}

// coded is a text that hides itself when it is written as one.
type coded string

func (coded) MarshalText() ([]byte, error) { return []byte("a name"), nil }

// failing is an error whose nil pointer has no text.
type failing struct{ text string }

func (f *failing) Error() string { return f.text }

// MCP servers choose the names of their tools and the texts of their errors.
func TestLogsDoNotControlATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	const evil = "x\x1b[2J\x07\u009b1;1H\u202ey"
	for _, value := range []any{evil, errors.New(evil), []string{evil}, map[string]string{evil: evil}, struct{ Name string }{evil}, fmt.Errorf("é: %w", errors.New(evil)), coded(evil), `x \x1b[2J`} {
		var out bytes.Buffer
		slog.New(textHandler(&out, slog.LevelInfo, true)).Info("m", "key", value)
		plain := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(out.String(), "") // colours
		if strings.ContainsFunc(plain, visible.ControlsTerminal) || !strings.Contains(plain, "x") && !strings.Contains(plain, "a name") {
			t.Errorf("%T: %q", value, out.String())
		}
	}
	var out bytes.Buffer
	slog.New(textHandler(&out, slog.LevelInfo, true)).Info("m", "error", (*failing)(nil), "n", 1, "nothing", nil)
	if !strings.Contains(out.String(), "<nil>") {
		t.Errorf("%q", out.String())
	}
}
