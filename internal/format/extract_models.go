package format

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/pkg/schema"
)

// The formats of tool calls in the chat templates of open models, for inference servers that do not
// parse them. Each starts with a special token of the model that no other text contains, so a call
// counts with any name.
const (
	mistralBegin = "[TOOL_CALLS]" // newer models write name, [CALL_ID] and [ARGS] before the object
	mistralID    = "[CALL_ID]"
	mistralArgs  = "[ARGS]"

	glmBegin = "<tool_call>" // the name without quotes, then pairs of arg_key and arg_value
	glmEnd   = "</tool_call>"

	kimiBegin = "<|tool_call_begin|>" // functions.NAME:0
	kimiArgs  = "<|tool_call_argument_begin|>"
	kimiEnd   = "<|tool_call_end|>"

	harmonyStart   = "<|start|>" // gpt-oss: the header names the recipient
	harmonyChannel = "<|channel|>"
	harmonyMessage = "<|message|>"
	harmonyEnd     = "<|call|>"

	gemmaBegin  = "<start_function_call>call:" // FunctionGemma: strings are quoted with <escape>
	gemmaEnd    = "<end_function_call>"
	gemmaEscape = "<escape>"
)

// model reads a call in the format of one of these models. It returns false if none starts here.
func (x *extractor) model() bool {
	rest := x.text[x.at:]
	begins := func(mark string) bool { return bytes.HasPrefix(rest, []byte(mark)) }
	switch {
	case begins(mistralBegin):
		return x.mistral()
	case begins(glmBegin):
		return x.glm()
	case begins(kimiBegin):
		return x.kimi()
	case begins(harmonyStart), begins(harmonyChannel):
		return x.harmony()
	case begins(gemmaBegin):
		return x.functionGemma()
	}
	return false
}

// leadingName returns the name at the start of a text, and the rest.
func leadingName(text []byte) (name string, rest []byte) {
	n := 0
	for n < len(text) && n < maxWrittenName && (nameByte(text[n]) || strings.IndexByte(".:/", text[n]) >= 0) {
		n++
	}
	return string(text[:n]), text[n:]
}

// put adds a call and advances past it.
func (x *extractor) put(c Call, end int, repaired bool) bool {
	if c.Arguments == nil {
		c.Arguments = []byte("{}")
	}
	x.found = append(x.found, Found{Call: c, Start: x.at, End: end, Repaired: repaired})
	x.at = end
	return true
}

// arguments reads an object at the start of a text and returns its bytes and its end. whole reports
// that inside ends at a mark and not at the end of the text, so the object cannot be truncated.
func (x *extractor) arguments(inside []byte, whole bool) (arguments []byte, end int, repaired bool, err *schema.Error) {
	n := &lenientParser{text: inside, steps: x.steps}
	v, repaired, ok := x.value(n)
	switch {
	case !ok && !whole:
		return []byte("{}"), len(inside), false, cutOff()
	case !ok || !v.isObject():
		return []byte("{}"), len(inside), false, badArguments()
	case n.open:
		return []byte("{}"), n.at, repaired, cutOff()
	}
	return bytes.Clone(v.source()), n.at, repaired, nil
}

// mistral reads [TOOL_CALLS]name[CALL_ID]id[ARGS]{…}. The marks after the name may be missing. It
// leaves the older format, a list of objects, to [extractor.tagged].
func (x *extractor) mistral() bool {
	inside := bytes.TrimLeft(x.text[x.at+len(mistralBegin):], " \t\r\n")
	name, rest := leadingName(inside)
	if name == "" {
		return false
	}
	c := Call{Name: name}
	if after, ok := bytes.CutPrefix(rest, []byte(mistralID)); ok {
		c.ID, rest = leadingName(after)
	}
	after, marked := bytes.CutPrefix(rest, []byte(mistralArgs))
	rest = bytes.TrimLeft(after, " \t\r\n")
	if !marked && len(rest) > 0 && rest[0] != '{' {
		return false
	}
	from := len(x.text) - len(rest)
	var repaired bool
	var end int
	c.Arguments, end, repaired, c.Err = x.arguments(rest, false)
	if c.Err != nil && end == len(rest) {
		// A call that cannot be parsed ends at the next call.
		if next, more := x.indexOrEnd(mistralBegin, from); more {
			c.Err, end = badArguments(), next-from
		}
	}
	return x.put(c, from+end, repaired)
}

// glm reads <tool_call>name<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>, or an object
// instead of the pairs.
func (x *extractor) glm() bool {
	from := x.at + len(glmBegin)
	name, rest := leadingName(bytes.TrimLeft(x.text[from:], " \t\r\n"))
	after := bytes.TrimLeft(rest, " \t\r\n")
	pairs, object := bytes.HasPrefix(after, []byte("<arg_key>")), bytes.HasPrefix(after, []byte("{"))
	if name == "" || !pairs && !object && !bytes.HasPrefix(after, []byte(glmEnd)) {
		return false
	}
	to, closed := x.indexOrEnd(glmEnd, from)
	c := Call{Name: name}
	end := min(to+len(glmEnd), len(x.text))
	inside := x.text[len(x.text)-len(after) : to]
	repaired := false
	switch {
	case object:
		c.Arguments, _, repaired, c.Err = x.arguments(inside, closed)
	case !closed:
		c.Err = cutOff()
	default:
		c.Arguments = x.pairs(name, inside)
	}
	return x.put(c, end, repaired || pairs)
}

// pairs converts <arg_key>a</arg_key><arg_value>1</arg_value> to an object.
func (x *extractor) pairs(tool string, inside []byte) []byte {
	return x.assembled(tool, inside, func(parts []string) (name, said string) {
		return strings.TrimSpace(parts[1]), parts[3]
	}, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
}

// kimi reads <|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>.
func (x *extractor) kimi() bool {
	from := x.at + len(kimiBegin)
	head, _, ok := bytes.Cut(x.text[from:min(len(x.text), from+maxWrittenName)], []byte(kimiArgs))
	if !ok {
		if len(x.text)-from < maxWrittenName {
			return x.put(Call{Err: cutOff()}, len(x.text), false)
		}
		return false
	}
	id := strings.TrimSpace(string(head))
	name, _, _ := strings.Cut(strings.TrimPrefix(id, "functions."), ":")
	if name == "" || !utf8.ValidString(id) {
		return false
	}
	begin := from + len(head) + len(kimiArgs)
	to, closed := x.indexOrEnd(kimiEnd, begin)
	c := Call{ID: id, Name: name}
	var repaired bool
	c.Arguments, _, repaired, c.Err = x.arguments(x.text[begin:to], closed)
	return x.put(c, min(to+len(kimiEnd), len(x.text)), repaired)
}

// harmony reads a message of gpt-oss whose header names a function as its recipient:
// <|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>. The
// recipient may also follow the role, before the channel.
func (x *extractor) harmony() bool {
	head, _, ok := bytes.Cut(x.text[x.at:min(len(x.text), x.at+4*maxWrittenName)], []byte(harmonyMessage))
	_, to, addressed := bytes.Cut(head, []byte("to=functions."))
	name, _ := leadingName(to)
	if !ok || !addressed || name == "" || bytes.Contains(head, []byte("<|end|>")) {
		return false
	}
	begin := x.at + len(head) + len(harmonyMessage)
	end, closed := x.indexOrEnd(harmonyEnd, begin)
	c := Call{Name: name}
	var repaired bool
	c.Arguments, _, repaired, c.Err = x.arguments(x.text[begin:end], closed)
	return x.put(c, min(end+len(harmonyEnd), len(x.text)), repaired)
}

// functionGemma reads <start_function_call>call:name{a:<escape>text<escape>,b:1}<end_function_call>.
func (x *extractor) functionGemma() bool {
	from := x.at + len(gemmaBegin)
	name, rest := leadingName(x.text[from:])
	if name == "" || len(rest) == 0 || rest[0] != '{' {
		return false
	}
	g := &gemma{text: rest, steps: x.steps}
	v, ok := g.value(0)
	c := Call{Name: name}
	end := len(x.text) - len(rest) + g.at
	switch {
	case ok:
		c.Arguments = v.encode(nil)
		if bytes.HasPrefix(x.text[end:], []byte(gemmaEnd)) {
			end += len(gemmaEnd)
		}
	case g.at >= len(rest):
		c.Err = cutOff()
	default:
		c.Err = unreadable("The arguments of the tool call cannot be read. Write one object.")
		if to, closed := x.indexOrEnd(gemmaEnd, end); closed {
			end = to + len(gemmaEnd)
		}
	}
	return x.put(c, end, true)
}

// gemma reads the values of FunctionGemma: objects, lists, text between two <escape> marks, and
// unquoted words and numbers.
type gemma struct {
	text  []byte
	at    int
	steps *int
}

func (g *gemma) space() {
	for g.at < len(g.text) && strings.IndexByte(" \t\r\n", g.text[g.at]) >= 0 {
		g.at++
	}
}

// take consumes c after optional white space. It returns false if another byte follows.
func (g *gemma) take(c byte) bool {
	g.space()
	if g.at < len(g.text) && g.text[g.at] == c {
		g.at++
		return true
	}
	return false
}

func (g *gemma) value(depth int) (*value, bool) {
	g.space()
	if *g.steps -= 4; *g.steps < 0 || depth > nearlyDepth || g.at >= len(g.text) {
		return nil, false
	}
	switch {
	case bytes.HasPrefix(g.text[g.at:], []byte(gemmaEscape)):
		said, ok := g.escaped()
		return str(said), ok
	case g.take('{'):
		out := object()
		for !g.take('}') {
			name, ok := g.key()
			if !ok || !g.take(':') || len(out.members) >= maxArguments {
				return nil, false
			}
			v, ok := g.value(depth + 1)
			if !ok {
				return nil, false
			}
			out.set(name, v)
			g.take(',')
		}
		return out, true
	case g.take('['):
		out := list()
		for !g.take(']') {
			v, ok := g.value(depth + 1)
			if !ok {
				return nil, false
			}
			out.items = append(out.items, v)
			g.take(',')
		}
		return out, true
	}
	word := g.word(",}]")
	if g.at >= len(g.text) || word == "" {
		return nil, false
	}
	if v, err := read([]byte(word)); err == nil {
		return v, true
	}
	return str(word), true
}

// escaped reads text between two <escape> marks.
func (g *gemma) escaped() (string, bool) {
	inside := g.text[g.at+len(gemmaEscape):]
	to := bytes.Index(inside, []byte(gemmaEscape))
	if to < 0 {
		g.at = len(g.text)
		return "", false
	}
	*g.steps -= to / 8
	g.at += to + 2*len(gemmaEscape)
	return strings.ToValidUTF8(string(inside[:to]), "\uFFFD"), true
}

func (g *gemma) key() (string, bool) {
	g.space()
	if bytes.HasPrefix(g.text[g.at:], []byte(gemmaEscape)) {
		return g.escaped()
	}
	name := strings.Trim(g.word(":,}]"), `"'`)
	return name, name != ""
}

// word reads up to the first of the given end bytes.
func (g *gemma) word(ends string) string {
	from := g.at
	for g.at < len(g.text) && strings.IndexByte(ends, g.text[g.at]) < 0 {
		g.at++
	}
	*g.steps -= (g.at - from) / 8
	return strings.ToValidUTF8(strings.TrimSpace(string(g.text[from:g.at])), "\uFFFD")
}
