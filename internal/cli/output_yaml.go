package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// yamlOf converts a JSON document to YAML with the members in the same order and numbers digit for
// digit. It does not use a general YAML encoder, which would sort members or round numbers.
func yamlOf(document []byte) ([]byte, error) {
	w := yamlWriter{d: json.NewDecoder(bytes.NewReader(document))}
	w.d.UseNumber()
	if err := w.node(0, atTop); err != nil {
		return nil, err
	}
	return w.b.Bytes(), nil
}

// place is the context of a node on its line.
type place int

const (
	atTop place = iota
	afterKey
	afterDash
)

// yamlDepth limits the nesting. The front door has a lower limit for calls, but a server's schema
// may be nested deeper.
const yamlDepth = 1000

type yamlWriter struct {
	d     *json.Decoder
	b     bytes.Buffer
	depth int
}

// node writes the next value of the document. New lines are indented by indent.
func (w *yamlWriter) node(indent int, at place) error {
	token, err := w.d.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	switch {
	case !nested:
		w.scalar(token, indent, at)
		return nil
	case !w.d.More():
		w.inline(map[json.Delim]string{'{': "{}", '[': "[]"}[open], at)
	default:
		if w.depth++; w.depth > yamlDepth {
			return fmt.Errorf("the data is nested deeper than %d levels: use --output json", yamlDepth)
		}
		if at == afterKey {
			w.b.WriteByte('\n')
		}
		for first := true; w.d.More(); first = false {
			if first && at == afterDash {
				w.b.WriteByte(' ')
			} else {
				w.b.WriteString(strings.Repeat(" ", indent))
			}
			if err := w.entry(open, indent); err != nil {
				return err
			}
		}
		w.depth--
	}
	_, err = w.d.Token() // the end of the object or array
	return err
}

// entry writes a member of an object, or an element of an array.
func (w *yamlWriter) entry(open json.Delim, indent int) error {
	if open == '[' {
		w.b.WriteByte('-')
		return w.node(indent+2, afterDash)
	}
	key, err := w.d.Token()
	if err != nil {
		return err
	}
	name, _ := key.(string) // the decoder returns only strings here
	w.b.WriteString(yamlScalar(name) + ":")
	return w.node(indent+2, afterKey)
}

func (w *yamlWriter) scalar(token json.Token, indent int, at place) {
	switch v := token.(type) {
	case string:
		if at != atTop && isBlock(v) {
			w.block(v, indent)
			return
		}
		w.inline(yamlScalar(v), at)
	case json.Number:
		w.inline(v.String(), at)
	case bool:
		w.inline(strconv.FormatBool(v), at)
	default:
		w.inline("null", at)
	}
}

func (w *yamlWriter) inline(text string, at place) {
	if at != atTop {
		w.b.WriteByte(' ')
	}
	w.b.WriteString(text + "\n")
}

// block writes a multi-line text as a literal block.
func (w *yamlWriter) block(text string, indent int) {
	head := " |-\n"
	if body, ok := strings.CutSuffix(text, "\n"); ok {
		head, text = " |\n", body
	}
	w.b.WriteString(head)
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			w.b.WriteString(strings.Repeat(" ", indent) + line)
		}
		w.b.WriteByte('\n')
	}
}

// isBlock reports whether a literal block holds the text unchanged.
func isBlock(text string) bool {
	if !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") || strings.HasSuffix(text, "\n\n") || strings.ContainsAny(text[:1], " \t\n") {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) < 0
}

// plainText matches texts that YAML 1.1 and 1.2 read as strings without quotes, apart from the
// reserved words.
var plainText = regexp.MustCompile(`^[A-Za-z_/](:?[A-Za-z0-9_./@+=?&%,()$-])*( (:?[A-Za-z0-9_./@+=?%,()$-])+)*$`)

// yamlScalar returns a text on one line, in double quotes if YAML would read it differently without
// them. YAML accepts the escapes of Go.
func yamlScalar(text string) string {
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return strconv.Quote(text)
	}
	if plainText.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
