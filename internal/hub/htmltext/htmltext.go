package htmltext

import (
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/callyard/callyard/internal/kit/truncate"
)

// Options selects the content of the text.
type Options struct {
	// MaxBytes is the maximum length of the text; 0 means no limit.
	MaxBytes int
	// Links, if not nil, is the base URL against which link targets are resolved. Each target
	// follows the text of its link.
	Links *url.URL
}

// Document is the text of an HTML document.
type Document struct {
	Title     string
	Text      string
	Truncated bool // MaxBytes was reached
}

// skipped reports whether an element contains no text to extract.
func skipped(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Template, atom.Svg, atom.Noscript, atom.Iframe, atom.Object, atom.Noembed, atom.Noframes, atom.Canvas, atom.Select, atom.Textarea:
		return true
	}
	return false
}

// lineBreaks returns the number of line breaks around an element.
func lineBreaks(a atom.Atom) int {
	switch a {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Pre, atom.Table, atom.Ul, atom.Ol, atom.Dl, atom.Section, atom.Article:
		return 2
	case atom.Div, atom.Li, atom.Tr, atom.Br, atom.Hr, atom.Dt, atom.Dd, atom.Header, atom.Footer, atom.Main, atom.Nav, atom.Aside, atom.Figure, atom.Figcaption, atom.Form, atom.Fieldset, atom.Details, atom.Summary, atom.Address, atom.Body, atom.Option, atom.Caption:
		return 1
	}
	return 0
}

// Extract returns the text of an HTML document in UTF-8.
func Extract(document string, o Options) Document {
	e := extractor{o: o}
	z := html.NewTokenizer(strings.NewReader(document))
	for !e.full {
		switch kind := z.Next(); kind {
		case html.ErrorToken: // the end: the tokenizer takes any text
			return e.document()
		case html.TextToken:
			e.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			name, hasAttributes := z.TagName()
			if kind == html.SelfClosingTagToken && atom.Lookup(name) == atom.Svg {
				continue // it has no end tag, unlike an element of HTML
			}
			e.start(atom.Lookup(name), func(key string) string { return attribute(z, hasAttributes, key) })
		case html.EndTagToken:
			name, _ := z.TagName()
			e.end(atom.Lookup(name))
		}
	}
	return e.document()
}

func attribute(z *html.Tokenizer, more bool, key string) string {
	for more {
		var k, v []byte
		if k, v, more = z.TagAttr(); string(k) == key {
			return string(v)
		}
	}
	return ""
}

type extractor struct {
	o    Options
	out  strings.Builder
	full bool

	title   strings.Builder
	inTitle bool
	skip    atom.Atom // the outermost skipped element
	depth   int       // nesting of that element in itself
	pre     int
	href    string

	lines int  // pending line breaks
	space bool // pending space
}

func (e *extractor) document() Document {
	return Document{
		Title:     strings.Join(strings.Fields(strings.ToValidUTF8(e.title.String(), "")), " "),
		Text:      strings.TrimSpace(e.out.String()),
		Truncated: e.full,
	}
}

func (e *extractor) start(a atom.Atom, attribute func(string) string) {
	switch {
	case e.skip != 0:
		if a == e.skip {
			e.depth++
		}
		return
	case skipped(a):
		e.skip, e.depth = a, 1
		return
	case a == atom.Title && e.title.Len() > 0:
		e.skip, e.depth = a, 1
		return
	case a == atom.Title:
		e.inTitle = true
		return
	}
	e.breakLine(lineBreaks(a))
	switch a {
	case atom.Pre:
		e.pre++
	case atom.Li:
		e.write("- ")
	case atom.Td, atom.Th:
		e.space = true
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		e.write(strings.Repeat("#", int(a.String()[1]-'0')) + " ")
	case atom.A:
		e.href = attribute("href")
	case atom.Img:
		if alt := attribute("alt"); strings.TrimSpace(alt) != "" {
			e.text("[" + alt + "]")
		}
	}
}

func (e *extractor) end(a atom.Atom) {
	switch {
	case e.skip != 0:
		if a == e.skip {
			if e.depth--; e.depth == 0 {
				e.skip = 0
			}
		}
		return
	case a == atom.Title:
		e.inTitle = false
		return
	case a == atom.Pre && e.pre > 0:
		e.pre--
	case a == atom.A:
		e.link()
	}
	e.breakLine(lineBreaks(a))
}

// link writes the target of a link after its text.
func (e *extractor) link() {
	href := e.href
	e.href = ""
	if e.o.Links == nil || href == "" || strings.HasPrefix(href, "#") {
		return
	}
	if to, err := e.o.Links.Parse(href); err == nil && (to.Scheme == "http" || to.Scheme == "https") {
		e.write(" <" + strings.ToValidUTF8(to.String(), "") + ">")
	}
}

func (e *extractor) breakLine(n int) {
	e.lines = max(e.lines, n)
	if n > 0 {
		e.space = false
	}
}

// text adds text of the document, and collapses white space outside of pre.
func (e *extractor) text(text string) {
	switch {
	case e.skip != 0:
		return
	case e.inTitle:
		const most = 1000
		if e.title.Len() < most {
			e.title.WriteString(truncate.Head(text, most))
		}
		return
	case e.pre > 0:
		e.write(clean(text))
		return
	}
	for text != "" {
		i := strings.IndexFunc(text, unicode.IsSpace)
		if i == 0 {
			e.space = true
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
			continue
		}
		if i < 0 {
			i = len(text)
		}
		e.write(clean(text[:i]))
		text = text[i:]
	}
}

// clean removes what is not text.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// write adds text after the pending breaks and space.
func (e *extractor) write(text string) {
	if text == "" || e.full {
		return
	}
	if e.out.Len() > 0 {
		switch {
		case e.lines > 0:
			e.put(strings.Repeat("\n", e.lines))
		case e.space:
			e.put(" ")
		}
	}
	e.lines, e.space = 0, false
	e.put(text)
}

// put adds text up to the limit, without splitting a character.
func (e *extractor) put(text string) {
	if left := e.o.MaxBytes - e.out.Len(); e.o.MaxBytes > 0 && len(text) > left {
		text, e.full = truncate.Head(text, left), true
	}
	e.out.WriteString(text)
}
