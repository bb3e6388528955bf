package web

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

//go:embed templates/*.html
var templates embed.FS

//go:embed static/style.css static/live.js static/icon.svg
var static embed.FS

// difference is what a template shows of two texts.
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
		"level":   LevelName,
		"plain":   func(s any) string { return Escaped([]byte(fmt.Sprint(s))) },
		"diff":    func(label string, lines []line) difference { return difference{label, lines} },
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

// serveStatic serves styles, the script and the icon.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	content, err := static.ReadFile("static/" + r.PathValue("file"))
	if err != nil {
		problem.Write(w, schema.Errorf(schema.KindNotFound, "There is no such file."))
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

// stamp is a moment as an element: in UTC, which the script changes to the zone and the
// form of the reader.
func stamp(t time.Time, form string) template.HTML {
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format(form) + `</time>`) //nolint:gosec // digits and the letters of the form
}

// wait is a time to wait in words, as the script counts it down.
func wait(until, now time.Time) string {
	left := until.Sub(now).Round(time.Second)
	switch {
	case left <= 0:
		return "time is over"
	case left < time.Minute:
		return fmt.Sprintf("%d s left", int(left.Seconds()))
	case left < time.Hour:
		return fmt.Sprintf("%d min %02d s left", int(left.Minutes()), int(left.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min left", int(left.Hours()), int(left.Minutes())%60)
}

// number writes a count with its thousands apart.
func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// LevelName is the word for a risk level from 1 to 3.
func LevelName(level int) string {
	switch level {
	case 1:
		return "low"
	case 2:
		return "medium"
	}
	return "high"
}
