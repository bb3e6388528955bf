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

// Static returns the content and the media type of the console file with this name. ok is false
// if there is no such file.
func Static(name string) (content []byte, media string, ok bool) {
	content, err := static.ReadFile("static/" + name)
	return content, ui.MediaType(name), err == nil
}

var pageNames = []string{"overview", "key", "servers", "server", "fleet", "tools", "tool", "calls", "call", "batches", "batch", "policy", "sets", "keys", "newkey", "apikey", "secret", "audit", "state", "usage", "tenants", "tenant", "evaluations", "environments", "environment"}

func newPages() *ui.Pages {
	funcs := template.FuncMap{
		"count": ui.Number[int64],
		"ago":   ago,
		"tone":  badgeClass,
		"label": label,
		"deref": deref,
		"at":    at,
		"call":  callAddress,
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

// at returns path with query parameters, given as pairs of name and value. Parameters with an
// empty value are omitted.
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

// deref returns the string behind a pointer of a generated type, or "" for nil.
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

// label returns a state with its first letter in upper case, as it starts a line.
func label(text any) string {
	s := strings.NewReplacer("_", " ", "-", " ").Replace(fmt.Sprint(text))
	switch s {
	case "":
		return ""
	case "initialized": // the published API's name for a ready server
		s = "ready"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// badgeClass returns the CSS class of the badge for a state, a risk or a decision.
func badgeClass(state any) string {
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

// ago returns the time since t in words, in a single unit.
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

// seconds formats a duration in seconds, in a suitable unit. From a minute on it has two units.
func seconds(s float64) string {
	two := func(n, of int64, unit, next string) string {
		text := ui.Number(n/of) + " " + unit
		if rest := n % of; rest > 0 {
			text += " " + ui.Number(rest) + " " + next
		}
		return text
	}
	switch whole := int64(math.Round(s)); {
	case whole >= 48*3600:
		return two(whole/3600, 24, "days", "h")
	case whole >= 3600:
		return two(whole/60, 60, "h", "min")
	case whole >= 60:
		return two(whole, 60, "min", "s")
	case s < 0.001:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 1:
		return significant(s*1e3) + " ms"
	}
	return significant(s) + " s"
}

// significant formats a number with at most three significant digits.
func significant(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x > 0 && x < 0.005: // two decimals would round it to 0
		return "< 0.01"
	case x >= 100:
		return ui.Number(int64(math.Round(x)))
	case x >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
	}
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", x), "0"), ".")
}
