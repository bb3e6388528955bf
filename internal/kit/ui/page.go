package ui

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/textdiff"
	"github.com/callyard/callyard/internal/kit/visible"
)

//go:embed frame.html parts.html
var templates embed.FS

//go:embed ui.css page.js icon.svg
var static embed.FS

// Link is an entry of a navigation.
type Link struct {
	To, Label string
	Current   bool // it leads to the current page or its section
}

// Frame holds the data of the frame around every page.
type Frame struct {
	Title string
	Brand string // the part of the product; empty if the navigation shows it
	Nav   []Link
	// Tabs is the navigation within a section of the site, and TabsOf the name of the section.
	Tabs   []Link
	TabsOf string
	Who    string // the signed-in person, or ""
	// SignOut is the token of the form to sign out, or "" if there is no such form.
	SignOut string
	Now     time.Time
	Go      string // the target of an immediate redirect, or ""
	// Live is the script's reaction to a change: "list" replaces the page, "parts" its parts,
	// "page" announces a newer version, and "" does nothing. Stream is the address of the event
	// stream; "" means /events.
	Live, Stream string
	// Self is the address of this version of the page, if it differs from that of the request,
	// as in the response to a form. "" means the address of the request.
	Self string
	// Styles and Scripts are paths of additional files that this page needs.
	Styles, Scripts []string
	// Page is the data of the page's template.
	Page any
}

// Parse parses a page with the frame around it. Its files, below dir of fsys and given without
// extension, define "page" and its parts. funcs are added to the functions that all pages have. The
// error names the file that cannot be read.
func Parse(fsys fs.FS, dir string, funcs template.FuncMap, files ...string) (*template.Template, error) {
	t, err := template.New("frame.html").Funcs(shared()).Funcs(funcs).ParseFS(templates, "frame.html", "parts.html")
	for _, name := range files {
		if err == nil {
			t, err = t.ParseFS(fsys, path.Join(dir, name+".html"))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the page %s: %w", strings.Join(files, ", "), err)
	}
	return t, nil
}

// Static returns a file that every page needs, and its media type. ok is false if there is no such
// file.
func Static(name string) (content []byte, media string, ok bool) {
	content, err := static.ReadFile(name)
	return content, MediaType(name), err == nil
}

// MediaType returns the media type of a stylesheet, a script or an icon.
func MediaType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/css; charset=utf-8"
}

// difference is the diff of two texts, for templates.
type difference struct {
	Label string
	Lines []textdiff.Line
}

// shared returns the template functions of all pages.
func shared() template.FuncMap {
	return template.FuncMap{
		"shown":   func(s any) template.HTML { return visible.HTML(fmt.Append(nil, s)) },
		"bytes":   visible.HTML,
		"time":    func(t time.Time) template.HTML { return stamp(t, "2006-01-02 15:04:05 UTC") },
		"day":     func(t time.Time) template.HTML { return stamp(t, "2006-01-02 15:04 UTC") },
		"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"number":  Number[int],
		"plain":   func(s any) string { return visible.Escaped(fmt.Append(nil, s)) },
		"diff":    func(label string, lines []textdiff.Line) difference { return difference{label, lines} },
		"fold":    fold,
	}
}

// stamp returns a time in UTC as an HTML element. The script rewrites it in the time zone and
// format of the reader.
func stamp(t time.Time, form string) template.HTML {
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format(form) + `</time>`) //nolint:gosec // digits and the letters of the form
}

// Number formats a count with commas between thousands.
func Number[N ~int | ~int64 | ~uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
