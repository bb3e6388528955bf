package format

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/pkg/schema"
)

// maxText limits the text that is searched, in bytes. stepsPerByte limits the work for each byte.
const (
	maxText      = 1 << 20
	stepsPerByte = 8
)

// Found is a tool call that was found in plain text.
type Found struct {
	Call
	// Start and End are the byte offsets of the call in the text.
	Start, End int
	// Repaired reports that the original text of the call was not valid JSON.
	Repaired bool
}

// Lookup reports whether a tool of that name exists and returns its input schema.
type Lookup func(name string) (input []byte, known bool)

// Extract finds tool calls in the plain text of a model: in <tool_call> and similar tags,
// <function=…> and <invoke …> with parameters, after [TOOL_CALLS], in the formats of GLM, Kimi,
// gpt-oss and FunctionGemma, in fenced blocks, and as bare JSON objects with a name and arguments.
// The last two may be other data, so they count only if the name is that of a tool. A call in a tag
// counts with any name. Text that is nearly JSON is repaired. A call that the end of the text
// truncates has an Err. Extract stops after the first call over [MaxCalls]. It reads the first MiB
// of the text and takes time linear in its length.
func Extract(text string, lookup Lookup) []Found {
	text = truncate.Head(text, maxText)
	steps := stepsPerByte*len(text) + 10_000
	x := &extractor{text: []byte(text), lookup: lookup, steps: &steps, unclosed: make(map[string]bool)}
	for x.at < len(x.text) && len(x.found) <= MaxCalls && steps > 0 {
		x.next()
	}
	return x.found
}

type extractor struct {
	text     []byte
	at       int
	lookup   Lookup
	steps    *int
	unclosed map[string]bool // closing tags that do not occur again
	found    []Found
}

// tags lists the opening and closing tags in which models write calls.
var tags = [][2]string{
	{"<tool_call>", "</tool_call>"}, {"<tool_calls>", "</tool_calls>"}, {"<function_call>", "</function_call>"}, {"<functioncall>", "</functioncall>"},
	{"<|tool_call|>", "<|/tool_call|>"}, {"<function_calls>", "</function_calls>"}, {"[TOOL_CALLS]", "[/TOOL_CALLS]"}, {"<|python_tag|>", "<|eom_id|>"},
	{"<tool_use>", "</tool_use>"}, {"<action>", "</action>"}, {"<|python_start|>", "<|python_end|>"},
}

// next examines the next possible start of a call and advances.
func (x *extractor) next() {
	skip := bytes.IndexAny(x.text[x.at:], "<[{`")
	if skip < 0 {
		x.at = len(x.text)
		return
	}
	x.at += skip
	rest := x.text[x.at:]
	switch rest[0] {
	case '<', '[':
		if x.model() {
			return
		}
		for _, tag := range tags {
			if bytes.HasPrefix(rest, []byte(tag[0])) {
				x.tagged(tag[0], tag[1])
				return
			}
		}
		if rest[0] == '<' && x.named() {
			return
		}
	case '`':
		if bytes.HasPrefix(rest, []byte("```")) {
			x.fenced()
			return
		}
	}
	if rest[0] == '{' || rest[0] == '[' {
		x.readUntagged()
		return
	}
	x.at++
}

// indexOrEnd returns the position of the next mark at or after from. If there is none, it returns the
// end of the text and false.
func (x *extractor) indexOrEnd(mark string, from int) (int, bool) {
	if x.unclosed[mark] {
		return len(x.text), false
	}
	at := bytes.Index(x.text[from:], []byte(mark))
	if at < 0 {
		x.unclosed[mark] = true
		return len(x.text), false
	}
	*x.steps -= at / 8
	return from + at, true
}

// tagged reads the calls inside a tag.
func (x *extractor) tagged(begin, end string) {
	from := x.at + len(begin)
	to, closed := x.indexOrEnd(end, from)
	inside := bytes.TrimLeft(x.text[from:to], " \t\r\n")
	if bytes.HasPrefix(inside, []byte("<")) {
		x.at = from // it contains other tags, which are found next
		return
	}
	if fence, ok := bytes.CutPrefix(inside, []byte("```")); ok && closed {
		if _, body, ok := bytes.Cut(fence, []byte("\n")); ok {
			inside = bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(body), []byte("```")))
		}
	}
	start := x.at
	n := &lenientParser{text: inside, steps: x.steps}
	if len(inside) == 0 {
		x.at = from
		return
	}
	before := len(x.found)
	for n.at < len(inside) && len(x.found) <= MaxCalls {
		v, repaired, ok := x.anyValue(n)
		if !ok {
			break
		}
		for _, c := range x.callsOf(v, false) {
			x.add(c, start, to, end, closed, n.open, repaired)
		}
		for n.at < len(inside) && strings.IndexByte(" \t\r\n,;", inside[n.at]) >= 0 {
			n.at++
		}
		if !closed {
			break // the text after it may not belong to the tag
		}
	}
	if !closed {
		x.at = to - len(inside) + n.at
		if len(x.found) == before {
			x.found = append(x.found, Found{Call: Call{Arguments: []byte("{}"), Err: cutOff()}, Start: start, End: len(x.text)})
			x.at = len(x.text)
		}
		return
	}
	x.at = to + len(end)
	if len(x.found) == before {
		x.found = append(x.found, Found{
			Call:  Call{Arguments: []byte("{}"), Err: unreadable("A tool call cannot be read. Write one JSON object with name and arguments.")},
			Start: start, End: x.at,
		})
	}
}

func badArguments() *schema.Error {
	return unreadable("The arguments of the tool call cannot be read. Write one JSON object.")
}

func cutOff() *schema.Error {
	return unreadable("The tool call is truncated at the end of the text. Write the complete call again.")
}

func (x *extractor) add(c Call, start, to int, end string, closed, open, repaired bool) {
	f := Found{Call: c, Start: start, End: to + len(end), Repaired: repaired}
	if !closed {
		f.End = to
		if open {
			f.Err = cutOff()
		}
	}
	if f.End > len(x.text) {
		f.End = len(x.text)
	}
	x.found = append(x.found, f)
}

// anyValue reads a value as JSON or, if that fails, as Python.
func (x *extractor) anyValue(n *lenientParser) (v *value, repaired, ok bool) {
	at := n.at
	if v, repaired, ok = x.value(n); !ok {
		n.at = at
		v, ok = x.python(n)
		repaired = true
	}
	return v, repaired, ok
}

// value reads one value of near-JSON. repaired reports that it was not valid JSON.
func (x *extractor) value(n *lenientParser) (v *value, repaired, ok bool) {
	n.space()
	if n.at >= len(n.text) || n.text[n.at] != '{' && n.text[n.at] != '[' {
		return nil, false, false
	}
	from, begin := n.at, len(n.out)
	if !n.value(0) {
		n.out = n.out[:begin]
		return nil, false, false
	}
	if v, err := read(n.text[from:n.at]); err == nil {
		return v, false, true
	}
	v, err := read(bytes.Clone(n.out[begin:]))
	return v, true, err == nil
}

// readUntagged tries to read a call from a value outside any tag.
func (x *extractor) readUntagged() {
	n := &lenientParser{text: x.text, at: x.at, steps: x.steps}
	v, repaired, ok := x.value(n)
	if !ok && x.text[x.at] == '[' { // Llama writes a list of calls in Python syntax
		n = &lenientParser{text: x.text, at: x.at, steps: x.steps}
		v, ok = x.python(n)
		repaired = true
	}
	if !ok {
		x.at++
		return
	}
	calls := x.callsOf(v, true)
	if len(calls) == 0 { // skip the whole value, because values inside it are not calls either
		x.at = n.at
		return
	}
	for _, c := range calls {
		if n.open {
			c.Err = cutOff()
		}
		x.found = append(x.found, Found{Call: c, Start: x.at, End: n.at, Repaired: repaired})
	}
	x.at = n.at
}

// fenced tries to read calls from a fenced block.
func (x *extractor) fenced() {
	start := x.at
	line, ok := x.indexOrEnd("\n", x.at)
	if !ok {
		x.at += len("```")
		return
	}
	from := line + 1
	to, closed := x.indexOrEnd("```", from)
	if !closed {
		x.at = from // continue as if it were not a block
		return
	}
	body := bytes.TrimSpace(x.text[from:to])
	n := &lenientParser{text: body, steps: x.steps}
	var found []Found
	for n.at < len(body) {
		v, repaired, ok := x.anyValue(n)
		if !ok {
			break
		}
		for _, c := range x.callsOf(v, true) {
			found = append(found, Found{Call: c, Start: start, End: to + len("```"), Repaired: repaired})
		}
	}
	if len(found) == 0 && bytes.Contains(body, []byte("<")) {
		x.at = from // it may contain tags
		return
	}
	x.found = append(x.found, found[:min(len(found), MaxCalls+1-len(x.found))]...)
	x.at = to + len("```")
}

// named reads <function=NAME>…</function> and <invoke name="NAME">…</invoke>.
func (x *extractor) named() bool {
	rest := x.text[x.at:]
	var name, end string
	head := bytes.IndexByte(rest[:min(len(rest), maxWrittenName)], '>')
	if head < 0 {
		return false
	}
	tag := string(rest[1:head])
	if after, ok := strings.CutPrefix(tag, "function="); ok {
		name, end = strings.Trim(after, `"' `), "</function>"
	} else if after, ok := strings.CutPrefix(tag, "invoke name="); ok {
		name, end = strings.Trim(after, `"' `), "</invoke>"
	}
	if name == "" || !utf8.ValidString(name) {
		return false
	}
	start, from := x.at, x.at+head+1
	to, closed := x.indexOrEnd(end, from)
	f := Found{Call: Call{Name: name, Arguments: []byte("{}")}, Start: start, End: min(to+len(end), len(x.text)), Repaired: true}
	x.at = f.End
	switch inside := bytes.TrimSpace(x.text[from:to]); {
	case !closed:
		f.Err = cutOff()
	case bytes.HasPrefix(inside, []byte("{")):
		n := &lenientParser{text: inside, steps: x.steps}
		v, repaired, ok := x.value(n)
		if f.Repaired = repaired; ok && v.isObject() {
			f.Arguments = bytes.Clone(v.source())
		} else {
			f.Err = badArguments()
		}
	default:
		f.Arguments = x.parameters(name, inside)
	}
	x.found = append(x.found, f)
	return true
}

// maxArguments limits the arguments of a call that are not written as JSON.
const maxArguments = 256

// parameters converts <parameter=a>1</parameter> and <parameter name="a">1</parameter> to an
// object.
func (x *extractor) parameters(tool string, inside []byte) []byte {
	return x.assembled(tool, inside, func(parts []string) (name, said string) {
		name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(parts[1]), "name"), "=")
		name = strings.Trim(strings.TrimSpace(strings.TrimPrefix(name, "=")), `"'`)
		return name, strings.TrimSuffix(strings.TrimPrefix(parts[2], "\n"), "\n")
	}, "<parameter", ">", "</parameter>")
}

// assembled converts arguments that are not written as JSON to an object. The marks split each
// argument into the parts before each mark. read returns the name and the value from the parts.
func (x *extractor) assembled(tool string, inside []byte, read func(parts []string) (name, said string), marks ...string) []byte {
	properties := x.properties(tool)
	out := object()
	for len(out.members) < maxArguments {
		parts := make([]string, len(marks))
		for i, mark := range marks {
			part, rest, ok := bytes.Cut(inside, []byte(mark))
			if !ok {
				return out.encode(nil)
			}
			parts[i], inside = string(part), rest
		}
		name, said := read(parts)
		name = strings.ToValidUTF8(name, "\uFFFD")
		out.set(name, x.typed(properties, name, strings.ToValidUTF8(said, "\uFFFD")))
	}
	return out.encode(nil)
}

// properties returns the properties of a tool's input schema, or nil if it has none.
func (x *extractor) properties(tool string) *value {
	input, _ := x.lookup(tool)
	if root, err := read(input); err == nil {
		return root.get("properties")
	}
	return nil
}

// typed returns a value that was written without quotes: a string if the property accepts strings,
// else JSON if it can be parsed.
func (x *extractor) typed(properties *value, name, said string) *value {
	t := types(orEmpty(properties.get(name)))
	if slices.Contains(t, "string") {
		return str(said)
	}
	n := &lenientParser{text: []byte(strings.TrimSpace(said)), steps: x.steps}
	if n.value(0) && n.at == len(n.text) && !n.open {
		if parsed, err := read(n.out); err == nil && (len(t) > 0 || !parsed.isString()) {
			return parsed
		}
	}
	return str(said)
}

func orEmpty(v *value) *value {
	if v.isObject() {
		return v
	}
	return object()
}

// Member names that models use for the name of a tool and its arguments.
var (
	nameKeys     = []string{"name", "tool", "tool_name", "function_name", "function", "action", "recipient_name"}
	argumentKeys = []string{"arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "tool_args", "kwargs"}
)

// callsOf returns the calls in a value. If strict is set, a call needs arguments and the name of a
// known tool, because the value may be other data.
func (x *extractor) callsOf(v *value, strict bool) (all []Call) {
	if v.isList() {
		for _, item := range v.items {
			all = append(all, x.callsOf(item, strict)...)
		}
		return all
	}
	if !v.isObject() {
		return nil
	}
	if one := v.get("tool_call"); one.isObject() && one.get("tool_name") != nil {
		return x.callsOf(one, false) // only calls have this form, so a call of an unknown tool counts too
	}
	for _, inside := range []string{"tool_calls", "function_call", "functionCall", "tool_call", "tool_uses", "action"} {
		if inner := v.get(inside); inner.isObject() || inner.isList() {
			return x.callsOf(inner, strict)
		}
	}
	if inner := v.get("function"); inner.isObject() {
		v = inner
	}
	var name string
	for _, key := range nameKeys {
		if s := v.get(key).text(); s != "" {
			name = s
			break
		}
	}
	var arguments *value
	for _, key := range argumentKeys {
		if a := v.get(key); a != nil {
			arguments = a
			break
		}
	}
	if name == "" && len(v.members) == 1 && v.members[0].value.isObject() { // {"tool": {…}}
		if _, known := x.lookup(v.members[0].name); known {
			name, arguments = v.members[0].name, v.members[0].value
		}
	}
	if name == "" {
		return nil
	}
	name = onServer(v, name)
	if _, known := x.lookup(name); strict && (!known || arguments == nil) {
		return nil
	}
	c := Call{ID: v.get("id").text(), Name: name, Arguments: []byte("{}")}
	switch {
	case arguments == nil || arguments.kind == 'n':
	case arguments.isObject():
		c.Arguments = bytes.Clone(arguments.source())
	case arguments.isString():
		c.Err = x.written(&c, arguments.text())
	default:
		c.Err = unreadable("The arguments of the tool call are not an object. Write one JSON object.")
	}
	return []Call{c}
}

// serverKeys lists the member names that models use for the server of a tool.
var serverKeys = []string{"server_id", "server_name", "server"}

// onServer returns the tool name qualified with the server that the call gives in another member.
// Without it, the name could resolve to a tool of another server.
func onServer(v *value, name string) string {
	for _, key := range serverKeys {
		if server := v.get(key).text(); server != "" && !strings.HasPrefix(name, server+separator) {
			return Name(server, name)
		}
	}
	return name
}

// written parses arguments that are JSON in a string.
func (x *extractor) written(c *Call, said string) *schema.Error {
	if strings.TrimSpace(said) == "" {
		return nil
	}
	n := &lenientParser{text: []byte(said), steps: x.steps}
	v, _, ok := x.value(n)
	n.space()
	if !ok || !v.isObject() || n.at < len(n.text) {
		return badArguments()
	}
	c.Arguments = bytes.Clone(v.source())
	return nil
}
