package console

import (
	"embed"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/ui"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static/*
var static embed.FS

// Static returns a file of the console by its name, with its media type; ok is false for
// names that it does not have.
func Static(name string) (content []byte, media string, ok bool) {
	content, err := static.ReadFile("static/" + name)
	return content, ui.MediaType(name), err == nil
}

var pageNames = []string{"overview", "key", "servers", "server", "fleet", "tools", "tool", "calls", "call", "batches", "batch", "policy", "sets", "keys", "newkey", "apikey", "secret", "audit", "state", "usage", "tenants", "tenant", "evaluations", "environments", "environment"}

func newPages() *ui.Pages {
	funcs := template.FuncMap{
		"count": ui.Number[int64],
		"ago":   ago,
		"tone":  tone,
		"label": label,
		"deref": deref,
		"at":    at,
		"ms": func(p *float64) string {
			if p == nil {
				return ""
			}
			return seconds(*p / 1000)
		},
		"share":   func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) },
		"several": func(n *int64) bool { return n != nil && *n > 1 },
		"fixed":   func(x float64) string { return fmt.Sprintf("%.3f", x) },
		"reward":  func(x *float64) string { return fmt.Sprintf("%.3f", *x) },
		"length":  length,
		"bytesin": bytesIn,
		"raw":     func(s string) []byte { return []byte(s) },
	}
	return ui.NewPages(templates, "templates", funcs, []string{"parts", "form", "keyfields"}, pageNames)
}

// at returns the address of a page with parameters, which come in pairs of name and value.
// Those without a value are left out.
func at(path string, pairs ...string) string {
	q := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// deref returns the text behind a pointer of a generated type; empty for nil.
func deref(p any) string {
	v := reflect.ValueOf(p)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	switch v = reflect.Indirect(v); v.Kind() {
	case reflect.Int, reflect.Int64:
		return ui.Number(v.Int())
	}
	return fmt.Sprint(v.Interface())
}

// label returns a state as it begins a line: with a capital letter.
func label(text any) string {
	s := strings.NewReplacer("_", " ", "-", " ").Replace(fmt.Sprint(text))
	switch s {
	case "":
		return ""
	case "initialized": // as the published API calls a server that is ready
		s = "ready"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// tone returns the class that colors the badge of a state, of a risk or of a decision.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case "initialized", "succeeded", "accepted", "run", "ready", "done", "completed", "allowed":
		return "success"
	case "running", "queued", "receiving":
		return "info"
	case "starting", "held", "hold", "medium", "new", "draining", "sandbox", "canceling", "expired":
		return "warning"
	case "error", "timeout", "failed", "denied", "deny", "refused", "unknown", "high", "changed", "offline", "missing", "unaccepted":
		return "danger"
	}
	return ""
}

// ago returns the time since t in words, in one unit.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case d < time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// seconds returns a number of seconds in the unit that suits it.
func seconds(s float64) string {
	switch {
	case s < 0.001:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 1:
		return significant(s*1e3) + " ms"
	}
	return significant(s) + " s"
}

// significant writes a number with three digits that count at most.
func significant(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x > 0 && x < 0.005: // two places would make it nothing
		return "< 0.01"
	case x >= 100:
		return ui.Number(int64(math.Round(x)))
	case x >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
	}
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}
