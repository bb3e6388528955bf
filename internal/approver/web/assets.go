package web

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/ui"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/internal/store/ledger"
	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static/approver.css static/live.js static/icon.svg
var static embed.FS

// difference is the difference of two texts, for templates.
type difference struct {
	Label string
	Lines []line
}

func parseTemplates() (map[string]*template.Template, error) {
	parsed := make(map[string]*template.Template)
	funcs := template.FuncMap{
		"shown":   func(s any) template.HTML { return Shown([]byte(fmt.Sprint(s))) },
		"bytes":   Shown,
		"time":    func(t time.Time) template.HTML { return stamp(t, "2006-01-02 15:04:05 UTC") },
		"day":     func(t time.Time) template.HTML { return stamp(t, "2006-01-02 15:04 UTC") },
		"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"nth":     func(i int) int { return i + 1 },
		"wait":    wait,
		"number":  number,
		"level":   risk.LevelName,
		"plain":   func(s any) string { return Escaped([]byte(fmt.Sprint(s))) },
		"diff":    func(label string, lines []line) difference { return difference{label, lines} },
		"fold":    fold,
		"label":   label,
		"tone":    tone,
		"past":    pastTense,
		"via":     via,
		"who":     func(name string) string { return strings.TrimPrefix(name, settings.NamePrefix) },
	}
	for _, name := range []string{"pending", "bulk", "outcomes", "history", "permissions", "detail", "signin", "message", "slack"} {
		t, err := template.New("frame.html").Funcs(funcs).ParseFS(templates, "templates/frame.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading the page %s: %w", name, err)
		}
		parsed[name] = t
	}
	return parsed, nil
}

// serveStatic serves the stylesheets, the script and the icon.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	content, err := static.ReadFile("static/" + r.PathValue("file"))
	if r.PathValue("file") == "ui.css" {
		content, err = ui.Stylesheet, nil
	}
	if err != nil {
		problem.Write(w, schema.Errorf(schema.KindNotFound, "The file does not exist."))
		return
	}
	media := "text/css; charset=utf-8"
	switch path.Ext(r.PathValue("file")) {
	case ".js":
		media = "text/javascript; charset=utf-8"
	case ".svg":
		media = "image/svg+xml"
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(content) // the browser went away; nobody is left to be told
}

// stamp returns a time as an element in UTC. The script rewrites it in the time zone and
// format of the reader.
func stamp(t time.Time, form string) template.HTML {
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format(form) + `</time>`) //nolint:gosec // digits and the letters of the form
}

// wait returns the time left in words, in the form in which the script counts it down.
func wait(until, now time.Time) string {
	left := until.Sub(now).Round(time.Second)
	switch {
	case left <= 0:
		return "expired"
	case left < time.Minute:
		return fmt.Sprintf("%d s left", int(left.Seconds()))
	case left < time.Hour:
		return fmt.Sprintf("%d min %02d s left", int(left.Minutes()), int(left.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min left", int(left.Hours()), int(left.Minutes())%60)
}

// number formats a count with commas between thousands.
func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// label returns a state, level or verb as it begins a line: with a capital letter.
func label(text any) string {
	switch s := fmt.Sprint(text); s {
	case "":
		return ""
	case permissionActive:
		return "Active"
	case permissionExpired:
		return "Expired"
	default:
		return strings.ToUpper(s[:1]) + s[1:]
	}
}

// tone returns the class that colors the badge of a state.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case string(ledger.Pending):
		return "warning"
	case string(ledger.Approved), string(ledger.Running):
		return "info"
	case string(ledger.Succeeded), permissionActive:
		return "success"
	case string(ledger.Denied), string(ledger.Failed), string(ledger.Unknown):
		return "danger"
	}
	return ""
}

// pastTense returns what a decision did.
func pastTense(kind ledger.DecisionKind) string {
	switch kind {
	case ledger.Approve:
		return "approved"
	case ledger.Deny:
		return "denied"
	case ledger.Edit:
		return "edited and approved"
	case ledger.Extend:
		return "deadline extended"
	case ledger.Revoke:
		return "withdrawn"
	}
	return string(kind)
}

// via returns the channel that a decision came through.
func via(channel string) string {
	switch channel {
	case "web":
		return "on the web"
	case "api":
		return "through the API"
	case "slack":
		return "in Slack"
	}
	return "through " + channel
}
